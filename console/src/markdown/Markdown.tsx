/** Markdown of models, which may be hostile: drawn as elements, never as HTML. */
import { Fragment, memo, type ReactNode, useMemo, useRef } from 'react';
import { Code } from '../ui/Code.tsx';
import { classes } from '../ui/classes.ts';
import { textLink } from '../ui/Links.tsx';
import { emptyText, grown } from './growing.ts';
import { isSafeAddress, type MarkdownNode, parsed } from './parse.ts';

const flow = 'flex min-w-0 flex-col gap-3 leading-relaxed break-words';

export function Markdown({ text }: { text: string }) {
  return (
    <div className={flow}>
      <Blocks text={text} />
    </div>
  );
}

/** A text that is still being written; `children` follow it. */
export function GrowingMarkdown({ text, children }: { text: string; children?: ReactNode }) {
  const drawn = useRef(emptyText);
  drawn.current = grown(drawn.current, text);
  const { pieces, tail } = drawn.current;
  return (
    <div className={flow}>
      {pieces.map((piece, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces are only added, at the end
        <Blocks key={i} text={piece} />
      ))}
      <Blocks key={pieces.length} text={tail} />
      {children}
    </div>
  );
}

const Blocks = memo(function Blocks({ text }: { text: string }) {
  const nodes = useMemo(() => parsed(text), [text]);
  if (nodes === undefined) return <p className="whitespace-pre-wrap">{text}</p>;
  return <Nodes nodes={nodes} />;
});

function Nodes({ nodes }: { nodes: readonly MarkdownNode[] }): ReactNode {
  // biome-ignore lint/suspicious/noArrayIndexKey: nodes have no identity but their place
  return nodes.map((node, i) => <Fragment key={i}>{drawn(node)}</Fragment>);
}

const headings: Record<string, string> = {
  h1: 'text-[17px] font-semibold',
  h2: 'text-[15px] font-semibold',
};
const aligned: Record<string, string> = {
  'text-align:center': 'text-center',
  'text-align:right': 'text-right',
};

/** Elements of blocks and of text, by the type of their token. */
const elements: Record<string, (node: MarkdownNode, within: ReactNode) => ReactNode> = {
  paragraph_open: ({ token }, within) =>
    // The text of an item in a list without space between its items.
    token.hidden ? within : <p>{within}</p>,
  // Those of the page come before it: its own begin at the third level.
  heading_open: ({ token }, within) => {
    const Level = `h${Math.min(6, Number(token.tag.slice(1)) + 2)}` as 'h3';
    return <Level className={headings[token.tag] ?? 'font-semibold'}>{within}</Level>;
  },
  bullet_list_open: (_, within) => <ul className="flex list-disc flex-col gap-1 pl-5">{within}</ul>,
  ordered_list_open: ({ token }, within) => (
    <ol
      className="flex list-decimal flex-col gap-1 pl-6"
      start={startOf(attribute(token, 'start'))}
    >
      {within}
    </ol>
  ),
  list_item_open: (_, within) => <li className="[&>ol]:mt-1 [&>p+*]:mt-2 [&>ul]:mt-1">{within}</li>,
  blockquote_open: (_, within) => (
    <blockquote className="flex flex-col gap-2 border-l-2 border-line-strong pl-3 text-muted">
      {within}
    </blockquote>
  ),
  table_open: (_, within) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
    <section aria-label="Table" tabIndex={0} className="overflow-x-auto">
      <table className="border-collapse text-[13px]">{within}</table>
    </section>
  ),
  thead_open: (_, within) => <thead>{within}</thead>,
  tbody_open: (_, within) => <tbody>{within}</tbody>,
  tr_open: (_, within) => <tr className="border-b">{within}</tr>,
  th_open: ({ token }, within) => (
    <th
      className={classes('px-3 py-1 text-left font-semibold', alignOf(attribute(token, 'style')))}
    >
      {within}
    </th>
  ),
  td_open: ({ token }, within) => (
    <td className={classes('px-3 py-1', alignOf(attribute(token, 'style')))}>{within}</td>
  ),
  hr: () => <hr />,
  fence: ({ token }) => <CodeBlock text={token.content} language={token.info} />,
  code_block: ({ token }) => <CodeBlock text={token.content} language="" />,
  text: ({ token }) => token.content,
  softbreak: () => <br />,
  hardbreak: () => <br />,
  code_inline: ({ token }) => (
    <code className="rounded bg-sunken px-1 py-0.5 font-mono text-[0.9em] wrap-anywhere">
      {token.content}
    </code>
  ),
  strong_open: (_, within) => <strong className="font-semibold">{within}</strong>,
  em_open: (_, within) => <em>{within}</em>,
  s_open: (_, within) => <s>{within}</s>,
  link_open: ({ token }, within) => <Away address={attribute(token, 'href')}>{within}</Away>,
  // An image would tell its host that it was seen: its address may carry what the model knows.
  image: ({ token }) => (
    <Away address={attribute(token, 'src')}>Image: {token.content || 'untitled'}</Away>
  ),
};

function drawn(node: MarkdownNode): ReactNode {
  const { token, children } = node;
  const within = children.length > 0 ? <Nodes nodes={children} /> : null;
  return elements[token.type]?.(node, within) ?? within ?? token.content;
}

function attribute(token: MarkdownNode['token'], name: string): string | null {
  const value = token.attrGet(name);
  return value === null ? null : String(value);
}

const startOf = (start: string | null) => (start === null ? undefined : Number(start));
const alignOf = (style: string | null) => aligned[style ?? ''];

/** The address is told, because the text of a link may name another one. */
function Away({ address, children }: { address: string | null; children: ReactNode }) {
  if (address === null || !isSafeAddress(address)) return children;
  return (
    <a
      href={address}
      title={address}
      target="_blank"
      rel="noopener noreferrer nofollow"
      className={classes('wrap-anywhere underline underline-offset-2', textLink)}
    >
      {children}
    </a>
  );
}

function CodeBlock({ text, language }: { text: string; language: string }) {
  const [name = ''] = language.trim().split(/\s/);
  return <Code text={text.replace(/\n$/, '')} label={name === '' ? 'Code' : `Code in ${name}`} />;
}
