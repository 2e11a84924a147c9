-- Whether the request log has been asked about a scope since it was not known. KEYS: spend.
return redis.call('HEXISTS', KEYS[1], 'looked')
