import type { LucideIcon } from '../ui/Icon.tsx';
import { BookOpen, BookText, Braces, ChartLine, ExternalLink } from '../ui/icons.tsx';
import { Section } from '../ui/Page.tsx';

const references: readonly [href: string, icon: LucideIcon, label: string, about: string][] = [
  ['/docs/guide/', BookText, 'Guides', 'From the first skill to production'],
  ['/docs', BookOpen, 'API reference', 'Every operation, to read and to try'],
  ['/openapi.json', Braces, 'OpenAPI document', 'The same for programs that write clients'],
  ['/metrics', ChartLine, 'Metrics', 'What Prometheus reads from this process'],
];

/** Links to other pages of the platform. */
export function References() {
  return (
    <Section title="References" flush>
      <ul className="divide-y">
        {references.map(([href, Icon, label, about]) => (
          <li key={href}>
            <a
              href={href}
              target="_blank"
              rel="noreferrer"
              className="flex items-center gap-3 px-4 py-2.5 transition-colors hover:bg-hover"
            >
              <Icon className="size-4 shrink-0 text-muted" aria-hidden />
              <span className="min-w-0 grow">
                <span className="block text-[13px] font-medium">
                  {label} <code className="font-normal text-muted">{href}</code>
                </span>
                <span className="block text-xs text-muted">{about}</span>
              </span>
              <ExternalLink className="size-3.5 shrink-0 text-muted" aria-label="opens a new tab" />
            </a>
          </li>
        ))}
      </ul>
    </Section>
  );
}
