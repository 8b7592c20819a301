/** The rules of an agent about the calls of its tools, as JSON. */

import type { Schema } from '../api/client.ts';
import { useMissingScopes } from '../shell/session.ts';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { ObjectField } from './ObjectField.tsx';
import { listOf } from './object-of.ts';

type Rules = Schema<'Agent'>['tool_rules'];

/** The rules that the user typed; throws as `listOf`. The platform checks them. */
export function rulesOf(text: string): Rules {
  return listOf(text, 'tool_rules', '[{"tools": "shop/*", "then": "ask"}]') as Rules;
}

export function ToolRulesField({
  value,
  onValue,
  error,
}: {
  readonly value: string;
  readonly onValue: (text: string) => void;
  readonly error?: string | undefined;
}) {
  const missing = useMissingScopes(['approvals']);
  if (missing.length > 0) {
    return (
      <div className="flex flex-col gap-1.5">
        <p className="text-[13px] font-medium">Rules for calls</p>
        <pre className="font-mono text-xs">{value}</pre>
        <NeedsScope scopes={missing} act="Changing this" />
      </div>
    );
  }
  return (
    <ObjectField
      label="Rules for calls (a JSON list)"
      optional
      hint='The first rule whose tools match and whose condition is true decides about a call: [{"tools": "shop/*", "when": "arguments.amount > 100", "then": "ask"}]. then is ask, refuse or allow.'
      rows={4}
      value={value}
      onValue={onValue}
      error={error}
    />
  );
}
