import { Page } from '../ui/Page.tsx';

export function TriggerPage() {
  return <Page title="Trigger">{null}</Page>;
}
