import { Fragment } from 'react';
import { Json } from '../ui/Code.tsx';
import { Section } from '../ui/Page.tsx';
import { Words } from '../ui/Words.tsx';
import {
  eitherText,
  hasShape,
  isSchema,
  type JsonSchema,
  resolved,
  rulesOf,
  schemasOf,
  typeText,
} from './schema.ts';

/** Deeper ones are in the JSON below. */
const depthMax = 6;

interface Line {
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  readonly isRequired: boolean;
  readonly schema: JsonSchema;
  /** Not a property, but one of several shapes, or the entries of a list or map. */
  readonly isPart: boolean;
}

/** A schema as a table of its properties, and as JSON below. */
export function SchemaTable({ title, schema }: { title: string; schema: JsonSchema }) {
  const lines = [...linesOf(schema, schema)];
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
                <SchemaLine key={line.path} line={line} root={schema} />
              ))}
            </tbody>
          </table>
        </section>
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

function SchemaLine({ line, root }: { line: Line; root: JsonSchema }) {
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

/** The properties of a schema, and theirs below them. */
function* linesOf(given: JsonSchema, root: JsonSchema, path = '', depth = 0): Generator<Line> {
  if (depth > depthMax) return;
  const schema = resolved(given, root);
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  for (const part of schemasOf(schema['allOf'])) yield* linesOf(part, root, path, depth);
  if (isSchema(schema['properties'])) {
    for (const [name, property] of Object.entries(schema['properties'])) {
      const at = `${path}/${name}`;
      yield* withBelow(at, name, depth, isSchema(property) ? property : {}, root, {
        isRequired: required.includes(name),
      });
    }
  }
  if (isSchema(schema['additionalProperties'])) {
    yield* withBelow(`${path}/*`, 'any other', depth, schema['additionalProperties'], root, {
      isPart: true,
    });
  }
  const options = [...schemasOf(schema['oneOf']), ...schemasOf(schema['anyOf'])].filter(hasShape);
  for (const [i, option] of options.entries()) {
    // Rules that the type already shows need no line.
    if ([...linesOf(option, root, '', depth)].length === 0) continue;
    yield* withBelow(
      `${path}|${i}`,
      `as ${option['title'] ?? typeText(option, root)}`,
      depth,
      option,
      root,
      { isPart: true },
    );
  }
  if (isSchema(schema['items'])) yield* linesOf(schema['items'], root, `${path}[]`, depth);
}

function* withBelow(
  path: string,
  name: string,
  depth: number,
  given: JsonSchema,
  root: JsonSchema,
  { isRequired = false, isPart = false },
): Generator<Line> {
  const schema = resolved(given, root);
  yield { path, name, depth, schema, isRequired, isPart };
  yield* linesOf(schema, root, path, depth + 1);
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
