-- Feedback may say that an answer was edited before it was used. Rollouts count such answers of both arms by the copies,
-- which have the rollout and the arm of the request already. Copies that are there already say nothing of it. The
-- statement can run again.
-- Reverse: drop the column.
ALTER TABLE feedback ADD COLUMN IF NOT EXISTS edited Bool;
