import { useQuery } from '@tanstack/react-query';
import { agentsQuery } from '../api/agents.ts';
import { type Choice, PickManyField } from '../ui/PickMany.tsx';

/** The agents that an agent may give tasks to. */
export function CalledAgentsField({
  agentId,
  values,
  onValues,
  error,
}: {
  /** The agent itself, which is not offered. */
  agentId: string;
  values: readonly string[];
  onValues: (values: string[]) => void;
  error?: string | undefined;
}) {
  const { data } = useQuery(agentsQuery());
  const others = (data?.data ?? []).filter(({ id }) => id !== agentId);
  const choices = others.map(({ id, name, description }): Choice => {
    const about = [name === id ? '' : name, description].filter((part) => part !== '').join(': ');
    return { value: id, about };
  });
  return (
    <PickManyField
      label="Agents"
      optional
      error={error}
      hint="Agents that its model may give tasks to. Each works by its own instructions, model and skills, as a job of its own."
      values={values}
      onValues={onValues}
      choices={choices}
      placeholder="the id of an agent"
    />
  );
}
