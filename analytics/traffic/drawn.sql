-- Sessions whose lengths have a heavy tail, as many as make up {requests} turns exactly: the last one is cut.
-- A session without a name stands for a request without a session id.
SELECT
    h, '' AS prefix, named, toUInt32(least(length, {requests:UInt64} - (upto - length))) AS turns, 0. AS pause,
    UNIFORM(h, 30) AS share, arrayFirstIndex(border -> border > share, {cumulative:Array(Float64)}) AS i,
    {borders:Array(Int64)}[i - 1] + toInt64(
        ({borders:Array(Int64)}[i] - {borders:Array(Int64)}[i - 1])
        * (share - {cumulative:Array(Float64)}[i - 1])
        / ({cumulative:Array(Float64)}[i] - {cumulative:Array(Float64)}[i - 1])
    ) AS begun
FROM (
    SELECT *, sum(length) OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto
    FROM (
        SELECT
            number AS n, sipHash64({salt:UInt64}, {slice:UInt32}, number) AS h, UNIFORM(h, 31) > 0.3 AS named,
            if(named, least(400, toUInt64(2 * pow(1 - UNIFORM(h, 32), -1 / 1.2))), 1) AS length
        FROM numbers({requests:UInt64})
    )
)
WHERE upto - length < {requests:UInt64}
