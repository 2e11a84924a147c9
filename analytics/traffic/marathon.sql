-- One session that goes on from the first border to the last.
SELECT
    sipHash64({salt:UInt64}, {slice:UInt32}) AS h, 'marathon' AS prefix, true AS named, toUInt32({requests:UInt64}) AS turns,
    ({borders:Array(Int64)}[-1] - {borders:Array(Int64)}[1]) / 1500000 / {requests:UInt64} AS pause,
    {borders:Array(Int64)}[1] AS begun
