-- The mean sampled curve over the seeds of each recipe, with a 95 % interval.
SELECT
    coalesce(runs.recipe, e.run) AS recipe,
    left(coalesce(runs.recipe_hash, ''), 8) AS hash,
    e.stage, e.split, e.metric, e.iteration,
    avg(e.value) AS mean,
    avg(e.value) - 1.96 * stddev_samp(e.value) / sqrt(count(e.value)) AS low,
    avg(e.value) + 1.96 * stddev_samp(e.value) / sqrt(count(e.value)) AS high,
    count(e.value) AS seeds
FROM evaluations AS e LEFT JOIN runs ON runs.run = e.run
WHERE e.mode = 'sampled'
GROUP BY ALL
ORDER BY recipe, hash, stage, split, metric, iteration
