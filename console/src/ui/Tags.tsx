import { classes } from './classes.ts';
import { Tag } from './Status.tsx';

/** All of them; or in one line the first `most`, how many more there are, and all of them on hover. */
export function Tags({ values, most }: { values: readonly string[]; most?: number }) {
  const rest = most === undefined ? [] : values.slice(most);
  return (
    <span
      className={classes('inline-flex items-center gap-1', most === undefined && 'flex-wrap')}
      title={rest.length > 0 ? values.join('\n') : undefined}
    >
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
