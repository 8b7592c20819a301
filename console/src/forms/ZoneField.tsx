import { useId } from 'react';
import { browserZone, utc, zoneNames } from '../schedules/zones.ts';
import { Button } from '../ui/Button.tsx';
import { TextField } from '../ui/Field.tsx';

/** A time zone by its name, with the names that the browser knows as suggestions. */
export function ZoneField({
  value,
  onValue,
  error,
}: {
  value: string;
  onValue: (zone: string) => void;
  error?: string | undefined;
}) {
  const list = useId();
  const own = browserZone();
  return (
    <>
      <TextField
        label="Time zone"
        hint="The fields are local times there, also through changes of its clocks."
        error={error}
        list={list}
        spellCheck={false}
        autoComplete="off"
        value={value}
        onValue={onValue}
      />
      <datalist id={list}>
        {zoneNames().map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <div className="-ml-2 flex flex-wrap">
        {[...new Set([utc, own])].map((name) => (
          <Button key={name} size="small" look="quiet" onClick={() => onValue(name)}>
            {name}
          </Button>
        ))}
      </div>
    </>
  );
}
