import { Page } from '../ui/Page.tsx';

export function SkillsPage() {
  return <Page title="Skills">{null}</Page>;
}
