import { Page } from '../ui/Page.tsx';

export function AgentPage() {
  return <Page title="Agent">{null}</Page>;
}
