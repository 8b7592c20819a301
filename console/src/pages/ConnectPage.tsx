import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { mcpClients } from '../connect/clients.ts';
import { NewApiKey } from '../forms/NewApiKey.tsx';
import { SecretField } from '../forms/SecretField.tsx';
import { useIsAdministrator } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Code } from '../ui/Code.tsx';
import { Plus } from '../ui/icons.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Tabs } from '../ui/Tabs.tsx';

const route = getRouteApi('/shell/connect');
/** Stands in the text until a key is given. */
const noKey = 'YOUR_KEY';

/** How programs with a model of their own use the skills: as tools of an MCP server. */
export function ConnectPage() {
  const { client = mcpClients[0]?.value ?? '' } = route.useSearch();
  const navigate = route.useNavigate();
  const isAdministrator = useIsAdministrator();
  const [key, setKey] = useState('');
  const [isCreating, setCreating] = useState(false);
  const url = `${location.origin}/mcp`;
  const create = isAdministrator && (
    <Button icon={<Plus />} onClick={() => setCreating(true)}>
      New API key
    </Button>
  );
  return (
    <Page title="Connect" actions={create}>
      <Section title="MCP server">
        <div className="flex flex-col gap-4">
          <p className="max-w-prose text-[13px] text-muted">
            Claude, editors and other MCP clients get every skill that a key may run as a tool, and
            every agent. Give the key few scopes: each tool takes room in what the model reads.
          </p>
          <div className="grid gap-4 md:grid-cols-2">
            <div className="flex min-w-0 flex-col gap-1.5">
              <p className="text-[13px] font-medium">Address</p>
              <Code text={url} label="Address" />
            </div>
            <SecretField
              label="API key"
              hint="Put into the text below. It stays in this page."
              value={key}
              onValue={setKey}
            />
          </div>
        </div>
      </Section>
      <Section title="Configuration">
        <Tabs
          value={client}
          onValue={(next) => void navigate({ search: { client: next }, replace: true })}
          tabs={mcpClients.map(({ value, label, where, text }) => ({
            value,
            label,
            content: (
              <div className="flex flex-col gap-2">
                <p className="text-[13px] text-muted">{where}</p>
                <Code text={text(url, key || noKey)} label={`Configuration of ${label}`} tall />
              </div>
            ),
          }))}
        />
      </Section>
      {isCreating && <NewApiKey onClose={() => setCreating(false)} />}
    </Page>
  );
}
