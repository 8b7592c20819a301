import { Page } from '../ui/Page.tsx';

export function TriggersPage() {
  return <Page title="Triggers">{null}</Page>;
}
