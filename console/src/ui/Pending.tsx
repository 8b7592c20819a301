import type { UseQueryResult } from '@tanstack/react-query';
import { Loaded } from './Loading.tsx';
import { Section } from './Page.tsx';

/** The content of a thing's page while the thing is being read, or why it cannot be. */
export function Pending({ query }: { query: UseQueryResult<unknown> }) {
  return (
    <Section>
      <Loaded query={query}>{() => null}</Loaded>
    </Section>
  );
}
