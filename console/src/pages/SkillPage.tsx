import { Page } from '../ui/Page.tsx';

export function SkillPage() {
  return <Page title="Skill">{null}</Page>;
}
