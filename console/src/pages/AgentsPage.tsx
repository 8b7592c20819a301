import { Page } from '../ui/Page.tsx';

export function AgentsPage() {
  return <Page title="Agents">{null}</Page>;
}
