import { Fragment } from 'react';
import { Json } from '../ui/Code.tsx';
import { Section } from '../ui/Page.tsx';
import { Words } from '../ui/Words.tsx';
import { linesOf, type SchemaLine } from './lines.ts';
import { eitherText, type JsonSchema, rulesOf, typeText } from './schema.ts';

/** A schema as a table of its properties, and as JSON below. */
export function SchemaTable({ title, schema }: { title: string; schema: JsonSchema }) {
  const { lines, isWhole } = linesOf(schema);
  const either = eitherText(schema);
  return (
    <Section title={title} flush>
      {(either !== undefined || typeof schema['description'] === 'string') && (
        <p className="border-b px-4 py-2.5 text-[13px] text-muted">
          {[schema['description'], either].filter(Boolean).join(' ')}
        </p>
      )}
      {lines.length === 0 ? (
        <p className="px-4 py-3 text-[13px] text-muted">
          {capital(typeText(schema, schema))}
          {rulesOf(schema).map((rule) => `, ${rule}`)}: it has no named properties.
        </p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what may have to be scrolled has to be reached by the keyboard
        <section aria-label={title} tabIndex={0} className="overflow-x-auto -outline-offset-2">
          <table className="w-full text-[13px]">
            <caption className="sr-only">{title}</caption>
            <thead>
              <tr className="border-b bg-sunken text-left text-xs text-muted">
                <th scope="col" className="px-4 py-2 font-medium">
                  Property
                </th>
                <th scope="col" className="px-4 py-2 font-medium">
                  Type
                </th>
                <th scope="col" className="w-full px-4 py-2 font-medium max-sm:hidden">
                  What it is
                </th>
              </tr>
            </thead>
            <tbody>
              {lines.map((line) => (
                <TableLine key={line.path} line={line} root={schema} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {!isWhole && (
        <p className="border-t px-4 py-2.5 text-[13px] text-muted">
          The schema goes on: the JSON below has all of it.
        </p>
      )}
      <details className="border-t px-4 py-2.5">
        <summary className="text-[13px] text-muted hover:text-ink">As JSON Schema</summary>
        <div className="mt-2.5">
          <Json value={schema} label={`${title} as JSON Schema`} />
        </div>
      </details>
    </Section>
  );
}

function TableLine({ line, root }: { line: SchemaLine; root: JsonSchema }) {
  const { name, depth, isRequired, isPart, schema } = line;
  const about = (
    <>
      {typeof schema['description'] === 'string' && (
        <p className="leading-relaxed text-pretty">
          <Words text={schema['description']} />
        </p>
      )}
      {rulesOf(schema).length > 0 && (
        <p className="mt-0.5 text-xs leading-relaxed break-words text-muted">
          {rulesOf(schema).map((rule, i) => (
            <Fragment key={rule}>
              {i > 0 && ' · '}
              {rule}
            </Fragment>
          ))}
        </p>
      )}
    </>
  );
  return (
    <tr className="border-b align-top last:border-0">
      <th scope="row" className="px-4 py-2.5 text-left font-normal whitespace-nowrap">
        <span style={{ paddingInlineStart: `${depth * 1.1}rem` }}>
          <span className={isPart ? 'text-muted' : 'font-mono text-xs font-medium'}>{name}</span>
          {isRequired && <span className="ml-2 text-xs text-warn-text">required</span>}
        </span>
      </th>
      <td className="px-4 py-2.5 text-muted">
        <span className="font-mono text-xs sm:whitespace-nowrap">{typeText(schema, root)}</span>
        <div className="mt-1 text-ink sm:hidden">{about}</div>
      </td>
      <td className="px-4 py-2.5 max-sm:hidden">{about}</td>
    </tr>
  );
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
