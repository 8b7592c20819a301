import { Code, Json } from './Code.tsx';

/** A value as JSON; a single text, alone or as the only member, as that text. */
export function Value({ value, label }: { value: unknown; label: string }) {
  const { name, text } = singleText(value);
  if (text === undefined) return <Json label={label} value={value} />;
  return (
    <>
      {name !== undefined && <p className="mb-1 font-mono text-xs text-muted">{name}</p>}
      <Code label={label} text={text} />
    </>
  );
}

/** JSON with a title. */
export function Labelled({ value, label }: { value: unknown; label: string }) {
  return (
    <div>
      <p className="mb-1 text-xs text-muted">{label}</p>
      <Json label={label} value={value} />
    </div>
  );
}

/** Shorter ones are read as easily as JSON. */
const shortMax = 60;

/** The text of `"…"` or `{"name": "…"}`, where JSON would write it in one long line. */
function singleText(value: unknown): { name?: string; text?: string } {
  const { name, text } = onlyText(value);
  if (text === undefined || name === undefined) return text === undefined ? {} : { text };
  return text.length > shortMax || text.includes('\n') ? { name, text } : {};
}

/** The text of `"…"` or `{"name": "…"}`; undefined for any other value. */
export function onlyText(value: unknown): { name?: string; text?: string } {
  if (typeof value === 'string') return { text: value };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  const [entry, ...others] = Object.entries(value);
  if (entry === undefined || others.length > 0 || typeof entry[1] !== 'string') return {};
  return { name: entry[0], text: entry[1] };
}
