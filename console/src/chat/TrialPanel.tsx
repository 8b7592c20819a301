/** Instructions and models for this chat alone, beside the saved ones. */
import { useState } from 'react';
import { changeAgent } from '../api/agents.ts';
import type { Overrides } from '../api/chat.ts';
import type { Schema } from '../api/client.ts';
import { GuardsField, guardsOf, rulesOf, ToolRulesField } from '../forms/ControlFields.tsx';
import { FallbackModelsField } from '../forms/FallbackModelsField.tsx';
import { FormProblem } from '../forms/FormProblem.tsx';
import { ModelSettingsFields } from '../forms/ModelSettingsFields.tsx';
import {
  isSame,
  type ModelSettings,
  type SettingTexts,
  settingIssues,
  settingsOf,
  settingTexts,
} from '../forms/model-settings.ts';
import { jsonText } from '../forms/ObjectField.tsx';
import { submitOnCtrlEnter } from '../forms/submit-keys.ts';
import { Button } from '../ui/Button.tsx';
import { issueOf, TextAreaField, TextField } from '../ui/Field.tsx';
import { Fold } from '../ui/Fold.tsx';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { useAct } from '../ui/useAct.ts';
import { Difference } from './Difference.tsx';

const folded = ['fallback_models', ...settingIssues];
const controls = ['tool_rules', 'guards'];

/** Whether a list is given and another one than the saved. */
function isOther<Value>(given: Value | undefined, saved: Value): given is Value {
  return given !== undefined && JSON.stringify(given) !== JSON.stringify(saved);
}

export function TrialPanel({
  agent,
  missing,
  overrides,
  onOverrides,
  user,
  userOfConversation,
  onUser,
}: {
  agent: Schema<'Agent'>;
  /** The scopes that the session lacks to try or change the agent. */
  missing: readonly string[];
  /** Null while the chat is with the agent as it is saved. */
  overrides: Overrides | null;
  onOverrides: (overrides: Overrides | null) => void;
  user: string;
  /** Undefined while the chat has no conversation. */
  userOfConversation: string | undefined;
  onUser: (user: string) => void;
}) {
  const save = useAct({
    act: (changes: Overrides) => changeAgent(agent.id, changes),
    done: 'The agent is saved',
    changes: [['agents']],
    quiet: true,
  });
  /** A field with its saved value is no override. */
  function edit(changed: Overrides) {
    const { instructions, model, model_settings, fallback_models, tool_rules, guards } = {
      ...overrides,
      ...changed,
    };
    const next: Overrides = {
      ...(instructions !== undefined && instructions !== agent.instructions && { instructions }),
      ...(model !== undefined && model !== agent.model && { model }),
      ...(model_settings !== undefined &&
        !isSame(model_settings, agent.model_settings) && { model_settings }),
      ...(fallback_models !== undefined &&
        fallback_models.join('\n') !== agent.fallback_models.join('\n') && { fallback_models }),
      ...(isOther(tool_rules, agent.tool_rules) && { tool_rules }),
      ...(isOther(guards, agent.guards) && { guards }),
    };
    onOverrides(Object.keys(next).length === 0 ? null : next);
  }
  const {
    instructions = agent.instructions,
    model = agent.model,
    model_settings: settings = agent.model_settings,
    fallback_models: fallbacks = agent.fallback_models,
    tool_rules: rules = agent.tool_rules,
    guards = agent.guards,
  } = overrides ?? {};
  return (
    <form
      noValidate
      aria-label="Settings of this chat"
      className="flex flex-col gap-4"
      onKeyDown={submitOnCtrlEnter}
      onSubmit={(event) => {
        event.preventDefault();
        if (overrides !== null && !save.isPending)
          save.mutate(overrides, { onSuccess: () => onOverrides(null) });
      }}
    >
      {missing.length > 0 ? (
        <NeedsScope scopes={missing} act="Trying or changing what the agent works with" />
      ) : (
        <>
          <TextAreaField
            label="Instructions"
            hint="What you change here counts in this chat alone, until you save it."
            error={issueOf(save.error, 'instructions')}
            value={instructions}
            onValue={(next) => edit({ instructions: next })}
            rows={10}
            className="min-h-32 resize-y"
          />
          <TextField
            label="Model"
            hint="provider/model. If empty, the platform’s DEFAULT_MODEL."
            error={issueOf(save.error, 'model')}
            value={model ?? ''}
            onValue={(next) => edit({ model: next === '' ? null : next })}
            placeholder="the default"
            className="font-mono text-[13px]"
          />
          <Fold
            label="Fallback models and model settings"
            isNeeded={folded.some((name) => issueOf(save.error, name) !== undefined)}
          >
            <FallbackModelsField
              model={model}
              values={fallbacks}
              onValues={(next) => edit({ fallback_models: next })}
              error={issueOf(save.error, 'fallback_models')}
            />
            <TrialSettings
              settings={settings}
              onSettings={(next) => edit({ model_settings: next })}
              error={save.error}
            />
          </Fold>
          <Fold
            label="Rules for calls and guards"
            isNeeded={controls.some((name) => issueOf(save.error, name) !== undefined)}
          >
            <TypedList
              Field={ToolRulesField}
              values={rules}
              read={rulesOf}
              onValues={(next) => edit({ tool_rules: next })}
              error={issueOf(save.error, 'tool_rules')}
            />
            <TypedList
              Field={GuardsField}
              values={guards}
              read={guardsOf}
              onValues={(next) => edit({ guards: next })}
              error={issueOf(save.error, 'guards')}
            />
          </Fold>
        </>
      )}
      {overrides !== null && (
        <>
          <Compared agent={agent} overrides={overrides} />
          <FormProblem
            error={save.error}
            fields={['instructions', 'model', ...folded, ...controls]}
          />
          <div className="flex flex-wrap items-center gap-2">
            <p className="mr-auto rounded bg-warn-soft px-1.5 py-0.5 text-xs text-warn-text">
              Not saved
            </p>
            <Button size="small" onClick={() => onOverrides(null)}>
              Discard
            </Button>
            <Button size="small" type="submit" look="primary" busy={save.isPending}>
              Save
            </Button>
          </div>
        </>
      )}
      <TextField
        label="User"
        optional
        hint="On whose behalf you write. The agent remembers what belongs to this user."
        value={user}
        placeholder={userOfConversation}
        onValue={onUser}
        maxLength={200}
        autoComplete="off"
      />
    </form>
  );
}

/** The fields keep what is typed, such as `0.`, as long as the settings of the chat are what it says. */
function TrialSettings({
  settings,
  onSettings,
  error,
}: {
  settings: ModelSettings | null;
  onSettings: (settings: ModelSettings | null) => void;
  error: unknown;
}) {
  const [typed, setTyped] = useState<SettingTexts>({});
  return (
    <ModelSettingsFields
      values={isSame(settingsOf(typed), settings) ? typed : settingTexts(settings)}
      onValues={(next) => {
        setTyped(next);
        onSettings(settingsOf(next));
      }}
      error={error}
    />
  );
}

/** A list that is typed as JSON. Text that is no list stays in its field, and the chat goes on with the list before it. */
function TypedList<Value>({
  Field,
  values,
  read,
  onValues,
  error,
}: {
  Field: typeof GuardsField;
  values: Value;
  read: (text: string) => Value;
  onValues: (values: Value) => void;
  error: string | undefined;
}) {
  const [typed, setTyped] = useState<{ text: string; fault?: string }>();
  const isTyped =
    typed !== undefined && (typed.fault !== undefined || !isOther(read(typed.text), values));
  function take(text: string) {
    try {
      onValues(read(text));
      setTyped({ text });
    } catch (fault) {
      setTyped({ text, fault: fault instanceof Error ? fault.message : 'is no list' });
    }
  }
  return (
    <Field
      value={isTyped ? typed.text : jsonText(values)}
      onValue={take}
      error={isTyped ? (typed.fault ?? error) : error}
    />
  );
}

function Compared({ agent, overrides }: { agent: Schema<'Agent'>; overrides: Overrides }) {
  const { instructions, model, model_settings: settings, fallback_models: fallbacks } = overrides;
  const { tool_rules: rules, guards } = overrides;
  return (
    <details className="group">
      <summary className="text-[13px] font-medium">Compare with the saved ones</summary>
      <div className="mt-2 flex flex-col gap-2">
        {instructions !== undefined && (
          <Difference
            label="Difference of the instructions"
            from={agent.instructions}
            to={instructions}
          />
        )}
        {model !== undefined && (
          <Difference
            label="Difference of the model"
            from={agent.model ?? 'the default'}
            to={model ?? 'the default'}
          />
        )}
        {fallbacks !== undefined && (
          <Difference
            label="Difference of the fallback models"
            from={agent.fallback_models.join('\n')}
            to={fallbacks.join('\n')}
          />
        )}
        {settings !== undefined && (
          <Difference
            label="Difference of the model settings"
            from={jsonText(agent.model_settings)}
            to={jsonText(settings)}
          />
        )}
        {rules !== undefined && (
          <Difference
            label="Difference of the rules for calls"
            from={jsonText(agent.tool_rules)}
            to={jsonText(rules)}
          />
        )}
        {guards !== undefined && (
          <Difference
            label="Difference of the guards"
            from={jsonText(agent.guards)}
            to={jsonText(guards)}
          />
        )}
      </div>
    </details>
  );
}
