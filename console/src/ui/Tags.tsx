import { Tag } from './Status.tsx';

/** Some of them, and how many more there are; all of them on hover. */
export function Tags({ values, most = 3 }: { values: readonly string[]; most?: number }) {
  const rest = values.slice(most);
  return (
    <span className="inline-flex flex-wrap items-center gap-1" title={values.join('\n')}>
      {values.slice(0, most).map((value) => (
        <Tag key={value}>{value}</Tag>
      ))}
      {rest.length > 0 && (
        <span className="text-xs text-muted">
          +{rest.length}
          <span className="sr-only">: {rest.join(', ')}</span>
        </span>
      )}
    </span>
  );
}
