import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { changeSkillConfig, clearSkillConfig, skillConfigQuery } from '../api/skills.ts';
import { FormProblem } from '../forms/FormProblem.tsx';
import { submitOnCtrlEnter } from '../forms/submit-keys.ts';
import { useMissingScopes } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { issueOf, TextField } from '../ui/Field.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { Section } from '../ui/Page.tsx';
import { Status } from '../ui/Status.tsx';
import { useAct } from '../ui/useAct.ts';

type Setting = Schema<'SkillSetting'>;

/** The settings that a skill declares, to be set and cleared for the organization. */
export function SettingsTab({
  skill: { id: skillId, required_scopes },
}: {
  skill: Pick<Schema<'Skill'>, 'id' | 'required_scopes'>;
}) {
  const missing = useMissingScopes(required_scopes);
  const query = useQuery(skillConfigQuery(skillId));
  return (
    <Loaded query={query}>
      {({ settings }) => (
        // Emptied by each change: what was filled in is stored then, and a secret is gone from the page.
        <SettingsForm
          key={query.dataUpdatedAt}
          skillId={skillId}
          settings={settings}
          missing={missing}
        />
      )}
    </Loaded>
  );
}

function SettingsForm({
  skillId,
  settings,
  missing,
}: {
  skillId: string;
  settings: readonly Setting[];
  /** The scopes that the session lacks to change them. */
  missing: readonly string[];
}) {
  const isRefused = missing.length > 0;
  const [filled, setFilled] = useState<Readonly<Record<string, string>>>({});
  const [isClearing, setClearing] = useState(false);
  const save = useAct({
    act: (values: Record<string, string | null>) => changeSkillConfig(skillId, values),
    done: 'The settings are stored',
    changes: [['skills']],
    quiet: true,
    isSecret: true,
  });
  const clear = useAct({
    act: () => clearSkillConfig(skillId),
    done: 'The values are deleted',
    changes: [['skills']],
    quiet: true,
  });
  const isAnyStored = settings.some(({ source }) => source === 'organization');
  const given = Object.entries(filled).filter(([, value]) => value !== '');
  return (
    <Section
      title="Settings of this organization"
      actions={
        isAnyStored &&
        !isRefused && (
          <Button size="small" onClick={() => setClearing(true)}>
            Clear all…
          </Button>
        )
      }
    >
      <form
        noValidate
        className="flex max-w-2xl flex-col gap-5"
        onSubmit={(event) => {
          event.preventDefault();
          if (given.length > 0 && !isRefused && !save.isPending) {
            save.mutate(Object.fromEntries(given));
          }
        }}
        onKeyDown={submitOnCtrlEnter}
      >
        {settings.map((setting) => (
          <SettingField
            key={setting.name}
            setting={setting}
            error={issueOf(save.error, setting.name)}
            value={filled[setting.name] ?? ''}
            onValue={(value) => setFilled((before) => ({ ...before, [setting.name]: value }))}
            onClear={() => save.mutate({ [setting.name]: null })}
            disabled={isRefused || save.isPending}
          />
        ))}
        <FormProblem error={save.error} fields={settings.map(({ name }) => name)} />
        {isRefused && <NeedsScope scopes={missing} act="Changing the settings" />}
        <div className="flex flex-wrap items-center gap-3">
          <Button
            type="submit"
            look="primary"
            busy={save.isPending}
            disabled={isRefused || given.length === 0}
          >
            Store
          </Button>
          <p className="min-w-0 basis-48 grow text-xs text-muted">
            Values are kept encrypted, and apply to all versions of the skill. What stays empty is
            not changed.
          </p>
        </div>
      </form>
      <Confirm
        open={isClearing}
        onClose={() => setClearing(false)}
        title="Clear all settings of this skill?"
        verb="Clear all"
        act={() => clear.mutateAsync()}
      >
        The values of this organization are deleted for all versions of the skill, and secrets
        cannot be brought back. The environment and the defaults apply then.
      </Confirm>
    </Section>
  );
}

function SettingField({
  setting,
  error,
  value,
  onValue,
  onClear,
  disabled,
}: {
  setting: Setting;
  error: string | undefined;
  value: string;
  onValue: (value: string) => void;
  onClear: () => void;
  disabled: boolean;
}) {
  const { name, description, secret, required, source, fault } = setting;
  const isStored = source === 'organization';
  return (
    <div className="flex flex-col gap-2">
      <TextField
        label={name}
        optional={!required}
        hint={description}
        error={error ?? fault ?? undefined}
        type={secret ? 'password' : 'text'}
        autoComplete={secret ? 'new-password' : 'off'}
        spellCheck={false}
        placeholder={placeholderOf(setting)}
        value={value}
        onValue={onValue}
        className="font-mono text-[13px]"
      />
      <div className="flex min-h-7 flex-wrap items-center gap-2 text-xs text-muted">
        <Source setting={setting} />
        {isStored && (
          <Button
            size="small"
            look="quiet"
            disabled={disabled}
            onClick={onClear}
            aria-label={`Clear ${name}`}
          >
            Clear
          </Button>
        )}
      </div>
    </div>
  );
}

function placeholderOf({ secret, source, value }: Setting): string {
  if (value !== null) return value;
  return secret && source === 'organization' ? '••••••••' : '';
}

/** Where the value comes from, and whether runs lack it. */
function Source({ setting: { source, required, fault } }: { setting: Setting }) {
  if (fault !== null) {
    return (
      <Status value="failed" tone="bad">
        unusable
      </Status>
    );
  }
  if (source === 'missing') {
    return required ? (
      <Status value="missing" tone="warn">
        missing
      </Status>
    ) : (
      <Status value="unset" tone="neutral">
        not set
      </Status>
    );
  }
  return (
    <Status value="set" tone={source === 'organization' ? 'good' : 'neutral'}>
      {sources[source]}
    </Status>
  );
}

const sources = {
  organization: 'set',
  environment: 'from the environment',
  default: 'default',
};

/** Tells that runs of the skill cannot start, and where to change that. */
export function MissingSettings({
  config,
  onOpen,
}: {
  config: Schema<'SkillConfiguration'> | undefined;
  onOpen: () => void;
}) {
  if (config === undefined || config.is_complete) return null;
  const missing = config.settings
    .filter(({ required, source, fault }) => fault !== null || (required && source === 'missing'))
    .map(({ name }) => name);
  return (
    <div className="flex flex-wrap items-center gap-3 rounded-md bg-warn-soft px-4 py-3 text-warn-text">
      <p className="min-w-0 grow basis-48 break-words">
        Runs cannot start: <span className="font-mono text-[13px]">{missing.join(', ')}</span>{' '}
        {missing.length === 1 ? 'has' : 'have'} no value.
      </p>
      <Button size="small" onClick={onOpen}>
        Open settings
      </Button>
    </div>
  );
}
