-- Reward parts by iteration: mean of what could be computed, and how many could not.
WITH entries AS (
    SELECT run, stage, iteration, unnest(map_entries(parts)) AS entry
    FROM trajectories
    WHERE split = 'train'
)
SELECT
    run, stage, iteration,
    entry.key AS part,
    avg(entry.value) AS mean,
    count(*) - count(entry.value) AS nulls,
    count(*) AS trajectories
FROM entries
GROUP BY ALL
ORDER BY run, stage, iteration, part
