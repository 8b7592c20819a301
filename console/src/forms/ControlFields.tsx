/** What holds an agent back, as JSON: rules about the calls of its tools, and guards. */

import type { Schema } from '../api/client.ts';
import { useMissingScopes } from '../shell/session.ts';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { ObjectField } from './ObjectField.tsx';
import { listOf } from './object-of.ts';

type Agent = Schema<'Agent'>;

/** The rules that the user typed; throws as `listOf`. The platform checks them. */
export function rulesOf(text: string): Agent['tool_rules'] {
  return listOf(text, 'tool_rules', '[{"tools": "shop/*", "then": "ask"}]') as Agent['tool_rules'];
}

/** The same for guards. */
export function guardsOf(text: string): Agent['guards'] {
  const example = '[{"skill": "safety/v1.0/moderate", "on": ["message"]}]';
  return listOf(text, 'guards', example) as Agent['guards'];
}

interface ControlProps {
  readonly value: string;
  readonly onValue: (text: string) => void;
  readonly error?: string | undefined;
}

export function ToolRulesField(props: ControlProps) {
  const hint =
    'The first rule whose tools match and whose condition is true decides about a call: [{"tools": "shop/*", "when": "arguments.amount > 100", "then": "ask"}]. then is ask, refuse or allow.';
  return <ControlField label="Rules for calls" hint={hint} {...props} />;
}

export function GuardsField(props: ControlProps) {
  const hint =
    'Skills that see texts first, in this order, and let them pass, replace or refuse them: [{"skill": "safety/v1.0/redact-personal-data", "on": ["message", "tool_result", "answer"]}]. input has further fields of the skill; on_failure is refuse or pass.';
  return <ControlField label="Guards" hint={hint} {...props} />;
}

function ControlField({
  label,
  value,
  ...props
}: ControlProps & { readonly label: string; readonly hint: string }) {
  const missing = useMissingScopes(['approvals']);
  if (missing.length > 0) {
    return (
      <div className="flex flex-col gap-1.5">
        <p className="text-[13px] font-medium">{label}</p>
        <pre className="font-mono text-xs">{value}</pre>
        <NeedsScope scopes={missing} act="Changing this" />
      </div>
    );
  }
  return (
    <ObjectField label={`${label} (a JSON list)`} optional rows={4} value={value} {...props} />
  );
}
