import type { Priority } from '../api/skills.ts';
import { quoted } from '../ui/quoted.ts';

/** The longest wait that the platform grants. */
const waitSeconds = 60;
const agentByDefault = 'default';

/** The curl command for the form, which waits for the end. */
export function curlOf(
  path: string,
  { agentId, priority }: { readonly agentId: string; readonly priority: Priority | '' },
  input: unknown,
): string {
  return [
    `curl -s ${location.origin}/api/${path}`,
    '-H "x-api-key: $KEY"',
    ...(agentId === agentByDefault ? [] : [`-H ${quoted(`x-agent-id: ${agentId}`)}`]),
    ...(priority === '' ? [] : [`-H 'x-priority: ${priority}'`]),
    `-H 'prefer: wait=${waitSeconds}'`,
    "-H 'content-type: application/json'",
    `-d ${quoted(JSON.stringify(input) ?? 'null')}`,
  ].join(' \\\n  ');
}
