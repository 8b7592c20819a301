import { Page } from '../ui/Page.tsx';

export function ConversationsPage() {
  return <Page title="Conversations">{null}</Page>;
}
