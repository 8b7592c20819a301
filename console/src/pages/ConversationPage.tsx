import { Page } from '../ui/Page.tsx';

export function ConversationPage() {
  return <Page title="Conversation">{null}</Page>;
}
