import { useMutation } from '@tanstack/react-query';
import { ChevronDown, Play } from 'lucide-react';
import {
  type FormEvent,
  type KeyboardEvent,
  lazy,
  Suspense,
  useEffect,
  useRef,
  useState,
} from 'react';
import { ApiError, type Schema } from '../api/client.ts';
import { runSkill } from '../api/skills.ts';
import { Button } from '../ui/Button.tsx';
import { Choice } from '../ui/Choice.tsx';
import { Code } from '../ui/Code.tsx';
import { Field, TextArea } from '../ui/Field.tsx';
import { Empty, Problem, Skeleton } from '../ui/Loading.tsx';
import { Menu } from '../ui/Menu.tsx';
import { Section } from '../ui/Page.tsx';
import { AgentField } from '../ui/Pickers.tsx';
import { curlOf } from './curl.ts';
import { RunResult } from './RunResult.tsx';

const SchemaForm = lazy(() =>
  import('../forms/SchemaForm.tsx').then(({ SchemaForm: component }) => ({ default: component })),
);

const ways = [
  { value: 'form', label: 'Form' },
  { value: 'json', label: 'JSON' },
] as const;

/** What a form begins with. */
export interface Start {
  readonly input: unknown;
  readonly agentId: string;
}

/** Fills in the input of a skill and runs it; what comes of it is shown beside. */
export function RunTab({ skill, start }: { skill: Schema<'Skill'>; start: Start }) {
  const { category, version, skill_name: skillName, parameters_schema, examples = [] } = skill;
  const [way, setWay] = useState<'form' | 'json'>('form');
  const [input, setInput] = useState(start.input);
  const [text, setText] = useState('');
  const [agentId, setAgentId] = useState(start.agentId);
  /** Another one makes the form anew. */
  const [filled, setFilled] = useState(0);
  /** The last one that was accepted. */
  const [jobId, setJobId] = useState<string>();
  const running = useMutation({
    mutationFn: (given: unknown) => runSkill({ category, version, skillName }, agentId, given),
    onSuccess: ({ job_id }) => setJobId(job_id),
  });
  const fault = way === 'json' ? jsonFault(text) : undefined;
  const issues = running.error instanceof ApiError ? running.error.details : [];

  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (running.error === null) return;
    form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [running.error]);

  function fill(value: unknown) {
    setInput(value);
    setText(JSON.stringify(value, null, 2) ?? '');
    setFilled((n) => n + 1);
    running.reset();
  }
  function turnTo(next: 'form' | 'json') {
    if (next === 'json') setText(JSON.stringify(input, null, 2) ?? '');
    setWay(next);
  }
  function write(next: string) {
    setText(next);
    if (jsonFault(next) === undefined) setInput(JSON.parse(next));
  }
  function submit(event: FormEvent) {
    event.preventDefault();
    if (fault === undefined && !running.isPending) running.mutate(input ?? {});
  }
  function onKeyDown(event: KeyboardEvent<HTMLFormElement>) {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.currentTarget.requestSubmit();
    }
  }
  return (
    <div className="grid items-start gap-5 lg:grid-cols-2">
      <Section
        title="Input"
        actions={
          <>
            <Examples examples={examples} onExample={fill} />
            <Choice label="Write it as" value={way} choices={ways} onValue={turnTo} />
          </>
        }
      >
        <form ref={form} onSubmit={submit} onKeyDown={onKeyDown} className="flex flex-col gap-5">
          {way === 'form' ? (
            <div>
              <Suspense fallback={<Skeleton />}>
                <SchemaForm
                  key={filled}
                  schema={parameters_schema}
                  value={input}
                  onValue={setInput}
                  issues={issues}
                />
              </Suspense>
            </div>
          ) : (
            <Field label="Input as JSON" error={fault ?? textOf(issues)}>
              {(control) => (
                <TextArea
                  {...control}
                  rows={12}
                  spellCheck={false}
                  className="field-sizing-content max-h-[32rem] min-h-56 resize-y font-mono text-xs"
                  value={text}
                  onChange={({ target }) => write(target.value)}
                />
              )}
            </Field>
          )}
          {running.error && <Problem error={running.error} />}
          <div className="flex flex-wrap items-end justify-between gap-3 border-t pt-4">
            <div className="w-48">
              <AgentField value={agentId} onValue={setAgentId} />
            </div>
            <Button
              type="submit"
              look="primary"
              icon={<Play />}
              busy={running.isPending}
              disabled={fault !== undefined}
              title="Ctrl Enter"
            >
              Run
            </Button>
          </div>
        </form>
      </Section>
      <div className="flex min-w-0 flex-col gap-5 lg:sticky lg:top-5">
        {jobId === undefined ? (
          <Section title="Run">
            <Empty icon={<Play />} title="Nothing was run yet">
              What the run says, and what comes of it, appears here as it happens.
            </Empty>
          </Section>
        ) : (
          <div key={jobId} ref={show}>
            <RunResult jobId={jobId} />
          </div>
        )}
        <Section title="The same with curl">
          <Code
            text={curlOf(`${category}/${version}/${skillName}`, agentId, input ?? {})}
            label="Command"
          />
          <p className="mt-2 text-xs text-muted">
            <code className="font-mono">$KEY</code> is an API key. It waits for the end of the run;
            without <code className="font-mono">prefer</code> the answer is the job as it was
            accepted.
          </p>
        </Section>
      </div>
    </div>
  );
}

/** Of a single one the refusal itself tells. */
const textOf = (issues: ApiError['details']): string | undefined =>
  issues.length < 2 ? undefined : issues.map(({ field, issue }) => `${field} ${issue}`).join('; ');

/** On a phone it is below the form. */
const show = (element: HTMLElement | null) => element?.scrollIntoView({ block: 'nearest' });

/** What is wrong with a text that is to be JSON; undefined when nothing is. */
function jsonFault(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `This is no JSON: ${(error as Error).message}`;
  }
}

function Examples({
  examples,
  onExample,
}: {
  examples: NonNullable<Schema<'Skill'>['examples']>;
  onExample: (input: unknown) => void;
}) {
  if (examples.length === 0) return null;
  return (
    <Menu
      label="Examples"
      trigger={
        <Button size="small" look="quiet">
          Examples
          <ChevronDown aria-hidden />
        </Button>
      }
      items={examples.map(({ input }, i) => ({
        label: `${i + 1}. ${shortened(JSON.stringify(input))}`,
        act: () => onExample(input),
      }))}
    />
  );
}

const shownMax = 48;
const shortened = (text: string) => (text.length > shownMax ? `${text.slice(0, shownMax)}…` : text);
