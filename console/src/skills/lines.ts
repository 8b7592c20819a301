/**
 * A schema as lines: its properties, and theirs below them. The schema may be a stranger's, and lead to itself along very
 * many ways, so only so much of it is read. No I/O.
 */
import { hasShape, isSchema, type JsonSchema, resolved, schemasOf, typeText } from './schema.ts';

/** Levels of properties; deeper ones are in the JSON of the schema. */
const depthMax = 6;
/** Schemas that are read, among them those that are too deep for a line. */
const schemasMax = 2_000;
const linesMax = 400;

export interface SchemaLine {
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  readonly isRequired: boolean;
  readonly schema: JsonSchema;
  /** Not a property, but one of several shapes, or the entries of a list or map. */
  readonly isPart: boolean;
}

interface Reading {
  readonly root: JsonSchema;
  readonly lines: SchemaLine[];
  /** Schemas that may still be read. */
  left: number;
}

/** The lines of a schema, and whether they are all that are within the depth. */
export function linesOf(schema: JsonSchema): { lines: readonly SchemaLine[]; isWhole: boolean } {
  const reading: Reading = { root: schema, lines: [], left: schemasMax };
  read(reading, schema, '', 0);
  const { lines, left } = reading;
  return { lines: lines.slice(0, linesMax), isWhole: left > 0 && lines.length <= linesMax };
}

/** Adds the lines of what is in a schema. */
function read(reading: Reading, given: JsonSchema, path: string, depth: number): void {
  const { root, lines } = reading;
  reading.left -= 1;
  if (depth > depthMax || lines.length > linesMax || reading.left <= 0) return;
  const schema = resolved(given, root);
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  for (const part of schemasOf(schema['allOf'])) read(reading, part, path, depth);
  if (isSchema(schema['properties'])) {
    for (const [name, property] of Object.entries(schema['properties'])) {
      const line = { path: `${path}/${name}`, name, isRequired: required.includes(name) };
      add(reading, { ...line, isPart: false }, isSchema(property) ? property : {}, depth);
    }
  }
  if (isSchema(schema['additionalProperties'])) {
    const line = { path: `${path}/*`, name: 'any other', isRequired: false, isPart: true };
    add(reading, line, schema['additionalProperties'], depth);
  }
  const options = [...schemasOf(schema['oneOf']), ...schemasOf(schema['anyOf'])].filter(hasShape);
  for (const [i, option] of options.entries()) {
    const at = lines.length;
    const unnamed = { path: `${path}|${i}`, name: '', isRequired: false, isPart: true };
    add(reading, unnamed, option, depth);
    const line = lines[at];
    // Rules that the type already shows need no line.
    if (lines.length === at + 1) lines.pop();
    // Named only now, because most have no line.
    else if (line) lines[at] = { ...line, name: `as ${option['title'] ?? typeText(option, root)}` };
  }
  if (isSchema(schema['items'])) read(reading, schema['items'], `${path}[]`, depth);
}

/** Adds a line, and those below it; nothing when enough schemas have been read. */
function add(
  reading: Reading,
  line: Omit<SchemaLine, 'schema' | 'depth'>,
  given: JsonSchema,
  depth: number,
): void {
  if (reading.left <= 0) return;
  const schema = resolved(given, reading.root);
  reading.lines.push({ ...line, depth, schema });
  read(reading, schema, line.path, depth + 1);
}
