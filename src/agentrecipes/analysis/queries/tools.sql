-- Tool use by iteration: calls of each tool, and calls a trajectory.
WITH used AS (
    SELECT
        run, stage, iteration, split, mode,
        unnest(from_json(calls, '[{"tool": "VARCHAR"}]')).tool AS tool
    FROM turns
),
played AS (
    SELECT run, stage, iteration, split, mode, count(*) AS trajectories
    FROM trajectories
    GROUP BY ALL
)
SELECT
    run, stage, iteration, split, mode, tool,
    count(*) AS calls,
    count(*) / any_value(trajectories) AS calls_mean
FROM used JOIN played USING (run, stage, iteration, split, mode)
GROUP BY ALL
ORDER BY run, stage, iteration, split, mode, tool
