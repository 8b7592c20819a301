import { Page } from '../ui/Page.tsx';

export function WebhookPage() {
  return <Page title="Webhook">{null}</Page>;
}
