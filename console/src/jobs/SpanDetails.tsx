import type { JobEvent } from '../api/follow.ts';
import { Facts } from '../ui/Page.tsx';
import { countText, durationText } from '../ui/Time.tsx';
import { Labelled } from '../ui/Value.tsx';
import { ErrorWords } from './ErrorWords.tsx';
import { isMoment, type Span } from './spans.ts';

/** With milliseconds, which count here. */
const exact = (ms: number) => new Date(ms).toISOString().replace('T', ' ').replace('Z', ' UTC');

/** What a row of the timeline has no room for. */
export function SpanDetails({ span, events }: { span: Span; events: readonly JobEvent[] }) {
  const { from, to, dueAt, step, error, outcome } = span;
  const ofStep = (type: string) =>
    events.findLast((event) => event.type === type && event.data['step'] === step?.step)?.data;
  const call = step && ofStep('tool_call');
  const result = step && ofStep('tool_result');
  const said = step?.kind === 'model' ? textOfStep(events, step.step) : '';
  return (
    <div className="flex flex-col gap-3">
      {error && <ErrorWords error={error} />}
      <Facts
        facts={[
          isMoment(span) ? ['At', exact(from)] : ['From', exact(from)],
          !isMoment(span) && ['To', to === null ? 'still going on' : exact(to)],
          to !== null && !isMoment(span) && ['Duration', durationText(to - from)],
          dueAt !== undefined && ['Due', exact(dueAt)],
          outcome !== '' && ['Outcome', outcome],
          step !== undefined && ['Step', `${step.step}, turn ${step.turn}`],
          step?.parent_step_id != null && ['Asked for by', `step ${step.parent_step_id}`],
          step?.kind === 'model' && [
            'Tokens',
            `${countText(step.prompt_tokens)} in, ${countText(step.completion_tokens)} out`,
          ],
        ]}
      />
      {said !== '' && (
        <p className="max-h-64 overflow-y-auto rounded-md border bg-surface p-3 leading-relaxed break-words whitespace-pre-wrap">
          {said}
        </p>
      )}
      {call && <Labelled label="Called with" value={call['input']} />}
      {result?.['output'] !== undefined && <Labelled label="Came back" value={result['output']} />}
    </div>
  );
}

/** What the model said in a step: whole once it is recorded, before that in the pieces that came. */
export function textOfStep(events: readonly JobEvent[], step: number): string {
  const own = events.filter(({ data }) => data['step'] === step);
  const whole = own.findLast(({ type }) => type === 'message');
  if (whole !== undefined) return String(whole.data['content']);
  return own
    .filter(({ type }) => type === 'token')
    .map(({ data }) => String(data['text']))
    .join('');
}
