import type { Trigger } from '../api/triggers.ts';
import { useMissingScopes } from '../shell/session.ts';
import { useMissingToRun } from '../skills/useMissingToRun.ts';

/** The scopes that the session lacks to change a trigger: those of its skill (null until they are read), or that of events. */
export function useMissingToChange(trigger: Trigger): readonly string[] | null {
  const ofSkill = useMissingToRun(trigger);
  const ofEvents = useMissingScopes(['events']);
  return trigger.event === null ? ofSkill : ofEvents;
}
