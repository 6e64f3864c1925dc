-- The ten longest wrong trajectories: exact_match, or else the total, below a half.
SELECT
    run, stage, iteration, split, mode, task, attempt, stop, turns,
    policy_tokens + observation_tokens AS tokens,
    answer, gold
FROM trajectories
WHERE coalesce(parts['exact_match'], total) < 0.5
ORDER BY tokens DESC, run, stage, iteration, split, mode, task, attempt
LIMIT 10
