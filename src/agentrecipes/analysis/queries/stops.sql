-- Why trajectories ended, by iteration.
SELECT
    run, stage, iteration, split, mode, stop,
    count(*) AS trajectories,
    count(*) / sum(count(*)) OVER (PARTITION BY run, stage, iteration, split, mode) AS share
FROM trajectories
GROUP BY run, stage, iteration, split, mode, stop
ORDER BY run, stage, iteration, split, mode, stop
