-- Returns 1 if the request log has been queried for a scope since its spend was last unknown, else 0. KEYS: spend.
return redis.call('HEXISTS', KEYS[1], 'looked')
