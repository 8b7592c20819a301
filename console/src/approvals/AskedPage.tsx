import type { Approval } from '../api/approvals.ts';
import { ExternalLink } from '../ui/icons.tsx';
import { textLink } from '../ui/Links.tsx';

/** A link to open before the approval, with its host and full address. Nothing opens automatically. */
export function AskedPage({ link }: { link: Approval['link'] }) {
  if (link === null) return null;
  return (
    <div className="rounded-md bg-sunken px-3 py-2 text-[13px]">
      <p>
        Opens a page of <strong className="wrap-anywhere">{link.host}</strong>, outside the
        platform. Approve once you have done there what it asks for.
      </p>
      <p className="mt-1 font-mono text-xs wrap-anywhere">{link.url}</p>
      <a
        href={link.url}
        target="_blank"
        rel="noopener noreferrer nofollow"
        className={`mt-1 inline-flex items-center gap-1 ${textLink}`}
      >
        <ExternalLink aria-hidden className="size-3.5" />
        Open the page of {link.host}
      </a>
    </div>
  );
}
