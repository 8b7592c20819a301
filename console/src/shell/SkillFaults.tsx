import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schema } from '../api/client.ts';
import { reloadQuery, reloadSkills } from '../api/reload.ts';
import { Button } from '../ui/Button.tsx';
import { FileWarning, RotateCw } from '../ui/icons.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';

type Reload = Schema<'SkillReload'>;
type Fault = Reload['faults'][number];

/** Faults that are shown. */
const shownMax = 5;

/** On every page of the administrator: files of skills that do not load, and a reload that was refused. */
export function SkillFaults() {
  const { data } = useQuery(reloadQuery);
  if (data === undefined) return null;
  const { status, file, faults } = data;
  const isRefused = status === 'refused' && !faults.some((fault) => fault.file === file);
  if (!isRefused && faults.length === 0) return null;
  return (
    <section
      aria-label="Faults of skills"
      className="border-b bg-bad-soft px-4 py-2.5 text-[13px] text-bad-text sm:px-6 lg:px-8"
    >
      {isRefused && <Refusal {...data} />}
      {faults.length > 0 && <Faults faults={faults} />}
    </section>
  );
}

function Refusal({ reason, file, line, column, differences, ended_at }: Reload) {
  const { mutate, isPending } = useAct({
    act: reloadSkills,
    done: 'The skills are reloaded',
    failed: 'The skills were not reloaded',
    changes: [['reload'], ['skills']],
  });
  return (
    <Note
      title="The last reload of the skills was refused; those loaded before stay in use"
      action={
        <Button size="small" icon={<RotateCw />} busy={isPending} onClick={() => mutate()}>
          Reload
        </Button>
      }
    >
      {differences.length === 0 ? (
        <li>
          {file !== null && <Place file={file} line={line} column={column} />}
          <Reason reason={reason ?? ''} file={file} /> <Time value={ended_at} />
        </li>
      ) : (
        differences.slice(0, shownMax).map(({ skill, difference }) => (
          <li key={`${skill} ${difference}`}>
            <span className="font-mono text-xs wrap-anywhere">{skill}</span> {difference}
          </li>
        ))
      )}
      <More count={differences.length - shownMax} />
    </Note>
  );
}

function Faults({ faults }: { faults: readonly Fault[] }) {
  const title =
    faults.length === 1 ? 'A skill does not load' : `${faults.length} skills do not load`;
  return (
    <Note title={title}>
      {faults.slice(0, shownMax).map(({ file, line, column, reason, ...fault }) => (
        <li key={file}>
          <Place file={file} line={line} column={column} />
          <Reason reason={reason} file={file} /> {insteadOf(fault)}
        </li>
      ))}
      <More count={faults.length - shownMax} />
    </Note>
  );
}

/** What runs of the skill get. */
function insteadOf({ serving, failing }: Pick<Fault, 'serving' | 'failing'>): string {
  if (failing !== null) {
    return `Runs of ${failing} fail until it loads: its last version does not load either.`;
  }
  return serving === null
    ? 'It is left out.'
    : `The last version of ${serving} that loaded is in use.`;
}

function Note({
  title,
  action,
  children,
}: {
  title: string;
  action?: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className="flex gap-2.5">
      <FileWarning className="mt-0.5 size-4 shrink-0" aria-hidden />
      <div className="min-w-0 grow">
        <div className="flex flex-wrap items-center justify-between gap-2">
          <p className="font-medium">{title}</p>
          {action}
        </div>
        <ul className="mt-1 space-y-1 wrap-anywhere">{children}</ul>
      </div>
    </div>
  );
}

function Place({ file, line, column }: Pick<Fault, 'file' | 'line' | 'column'>) {
  return (
    <span className="block font-mono text-xs wrap-anywhere">
      {file}
      {line !== null && `:${line}`}
      {column !== null && `:${column}`}
    </span>
  );
}

/** The place is shown already. */
function Reason({ reason, file }: { reason: string; file: string | null }) {
  const rest =
    file !== null && reason.startsWith(`${file}: `) ? reason.slice(file.length + 2) : reason;
  const text = rest.replace(/ \(line \d+[^()]*\)$/, '');
  return <>{`${text.charAt(0).toUpperCase()}${text.slice(1)}.`}</>;
}

function More({ count }: { count: number }) {
  return count > 0 ? <li>and {count} more</li> : null;
}
