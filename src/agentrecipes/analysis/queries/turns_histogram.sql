-- How many turns trajectories take, by stage, split and mode.
SELECT
    run, stage, split, mode, turns,
    count(*) AS trajectories,
    count(*) / sum(count(*)) OVER (PARTITION BY run, stage, split, mode) AS share,
    avg(total) AS total_mean
FROM trajectories
GROUP BY run, stage, split, mode, turns
ORDER BY run, stage, split, mode, turns
