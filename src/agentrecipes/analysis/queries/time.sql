-- Seconds by stage, and how much of the sampling went to the engine and to the tools.
WITH clock AS (
    SELECT run, stage, max(seconds) - min(seconds) AS seconds
    FROM metrics
    GROUP BY ALL
),
sampling AS (
    SELECT run, stage, sum(engine_seconds) AS engine_seconds, sum(tool_seconds) AS tool_seconds
    FROM turns
    GROUP BY ALL
)
SELECT run, stage, seconds, engine_seconds, tool_seconds
FROM clock FULL JOIN sampling USING (run, stage)
ORDER BY run, stage
