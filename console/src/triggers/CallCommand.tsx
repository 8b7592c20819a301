import type { Trigger } from '../api/triggers.ts';
import { useSkill } from '../forms/useSkill.ts';
import { Code } from '../ui/Code.tsx';
import { skillPath } from '../ui/Pickers.tsx';
import { curlOf, eventFile } from './curl.ts';

type Called = Pick<
  Trigger,
  'has_signing_secret' | 'mapping' | 'skill_category' | 'skill_version' | 'skill_name'
>;

/** The command that calls a trigger at `url`, with notes. */
export function CallCommand({ trigger, url }: { trigger: Called; url: string }) {
  const { example } = useSkill(skillPath(trigger));
  return (
    <div className="flex flex-col gap-1.5">
      <Code text={curlOf(trigger, url, example)} label="Command" />
      {trigger.mapping !== null && (
        <p className="text-[13px] text-muted">
          <code className="font-mono text-ink">{eventFile}</code>: what your sender sends; the
          mapping turns it into the skill’s input.
        </p>
      )}
    </div>
  );
}
