/** Generated from /openapi.json by `npm run console:types`: changes here are lost. */

import type { CallOptions, OperationTable } from '../operations.ts';
import type { Pages } from '../pages.ts';
import type { components, operations } from './schema.ts';

type Schemas = components['schemas'];

export interface OperationsApi {
  /** Whether requests can be served: `GET /health`. */
  getHealth(options?: CallOptions): Promise<Schemas['Health']>;
  /** Metrics in the Prometheus text format: `GET /metrics`. */
  getMetrics(
    options?: CallOptions,
  ): Promise<operations['getMetrics']['responses'][200]['content']['text/plain']>;
  /** This description of the API: `GET /openapi.json`. */
  getOpenApi(
    query?: NonNullable<operations['getOpenApi']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<operations['getOpenApi']['responses'][200]['content']['application/json']>;
  /** List the live processes: `GET /admin/processes`. */
  listProcesses(options?: CallOptions): Promise<Schemas['LiveProcesses']>;
}

export interface ApiKeysApi {
  /** Create an API key: `POST /admin/api-keys`. */
  create(body: Schemas['NewApiKey'], options?: CallOptions): Promise<Schemas['IssuedApiKey']>;
  /** List all API keys, newest first: `GET /admin/api-keys`. */
  list(options?: CallOptions): Pages<Schemas['ApiKey']>;
  /** Revoke an API key permanently: `DELETE /admin/api-keys/{id}`. */
  revoke(
    id: string,
    query?: NonNullable<operations['revokeApiKey']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<operations['revokeApiKey']['responses'][200]['content']['application/json']>;
}

export interface RegistryApi {
  /** List the SKILL.md files that were left out as invalid: `GET /admin/left-out-skills`. */
  listLeftOutSkills(options?: CallOptions): Pages<Schemas['LeftOutSkill']>;
  /** List every version that was ever registered: `GET /admin/skills`. */
  listAllSkills(options?: CallOptions): Pages<Schemas['ListedSkill']>;
  /** Get a version with its schemas, active or not: `GET /admin/skills/{category}/{version}/{skillName}`. */
  getAnySkill(
    category: string,
    version: string,
    skillName: string,
    query?: NonNullable<operations['getAnySkill']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['Skill']>;
  /** Deprecate a version: `POST /admin/skills/{category}/{version}/{skillName}/deprecate`. */
  deprecate(
    category: string,
    version: string,
    skillName: string,
    options?: CallOptions,
  ): Promise<Schemas['Skill']>;
  /** Activate a version again: `POST /admin/skills/{category}/{version}/{skillName}/activate`. */
  activate(
    category: string,
    version: string,
    skillName: string,
    options?: CallOptions,
  ): Promise<Schemas['Skill']>;
  /** Get how the last reload of the skills went: `GET /admin/skills/reload`. */
  getReload(options?: CallOptions): Promise<Schemas['SkillReload']>;
  /** Load the skills again: `POST /admin/skills/reload`. */
  reload(options?: CallOptions): Promise<Schemas['SkillReload']>;
  /** List the active skills: `GET /api/skills`. */
  list(
    query?: NonNullable<operations['listSkills']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['ListedSkill']>;
  /** Get an active skill with its schemas: `GET /api/skills/{category}/{version}/{skillName}`. */
  get(
    category: string,
    version: string,
    skillName: string,
    query?: NonNullable<operations['getSkill']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['Skill']>;
  /** Show the settings of a skill: `GET /api/skills/{id}/config`. */
  getConfig(id: string, options?: CallOptions): Promise<Schemas['SkillConfiguration']>;
  /** Set values of the settings of a skill: `PUT /api/skills/{id}/config`. */
  changeConfig(
    id: string,
    body: Schemas['SkillConfigurationValues'],
    options?: CallOptions,
  ): Promise<Schemas['SkillConfiguration']>;
  /** Delete all values of the settings of a skill: `DELETE /api/skills/{id}/config`. */
  clearConfig(id: string, options?: CallOptions): Promise<void>;
  /** Get the users of a version of a skill: `GET /api/skills/{category}/{version}/{skillName}/usages`. */
  getUsages(
    category: string,
    version: string,
    skillName: string,
    options?: CallOptions,
  ): Promise<Schemas['SkillUsages']>;
}

export interface CredentialsApi {
  /** List the credentials of an organization, newest first: `GET /admin/organizations/{organizationId}/credentials`. */
  list(
    organizationId: string,
    query?: NonNullable<operations['listCredentials']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['Credential']>;
  /** Store the credentials of an organization for a provider of models: `PUT /admin/organizations/{organizationId}/credentials/{provider}`. */
  replace(
    organizationId: string,
    provider: string,
    body: Schemas['NewCredential'],
    options?: CallOptions,
  ): Promise<Schemas['Credential']>;
  /** Delete the credentials of an organization for a provider; the platform's apply again: `DELETE /admin/organizations/{organizationId}/credentials/{provider}`. */
  delete(organizationId: string, provider: string, options?: CallOptions): Promise<void>;
}

export interface McpServersApi {
  /** List the MCP servers whose tools are skills, by name: `GET /admin/mcp-servers`. */
  list(
    query?: NonNullable<operations['listMcpServers']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['McpServerSummary']>;
  /** Add an MCP server, whose tools become skills: `POST /admin/mcp-servers`. */
  add(body: Schemas['NewMcpServer'], options?: CallOptions): Promise<Schemas['McpServer']>;
  /** Get an MCP server with its skills and what has changed of them: `GET /admin/mcp-servers/{name}`. */
  get(name: string, options?: CallOptions): Promise<Schemas['McpServer']>;
  /** Change an MCP server, and refresh it: `PUT /admin/mcp-servers/{name}`. */
  replace(
    name: string,
    body: Schemas['McpServerChange'],
    options?: CallOptions,
  ): Promise<Schemas['McpServer']>;
  /** Remove an MCP server; its skills become inactive: `DELETE /admin/mcp-servers/{name}`. */
  delete(name: string, options?: CallOptions): Promise<void>;
  /** Get a version of a skill with all that is pinned of it, to be read before it is activated: `GET /admin/mcp-servers/{name}/skills/{version}/{skillName}`. */
  getMcpSkillVersion(
    name: string,
    version: string,
    skillName: string,
    options?: CallOptions,
  ): Promise<Schemas['PinnedRemoteSkillVersion']>;
  /** Compare the skills of an MCP server with its tools of now: `POST /admin/mcp-servers/{name}/refresh`. */
  refresh(name: string, options?: CallOptions): Promise<Schemas['McpServer']>;
  /** Activate a version in quarantine: `POST /admin/mcp-servers/{name}/skills/{version}/{skillName}/activate`. */
  activateMcpSkill(
    name: string,
    version: string,
    skillName: string,
    body: Schemas['McpSkillDecision'],
    options?: CallOptions,
  ): Promise<Schemas['McpServer']>;
  /** Reject a version in quarantine: `POST /admin/mcp-servers/{name}/skills/{version}/{skillName}/reject`. */
  rejectMcpSkill(
    name: string,
    version: string,
    skillName: string,
    body: Schemas['McpSkillDecision'],
    options?: CallOptions,
  ): Promise<Schemas['McpServer']>;
  /** List the accounts of organizations at an MCP server: `GET /admin/mcp-servers/{name}/accounts`. */
  listAccounts(
    name: string,
    query?: NonNullable<operations['listMcpServerAccounts']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['AccountOfOrganization']>;
  /** Disconnect the account of an organization at an MCP server: `DELETE /admin/mcp-servers/{name}/accounts/{organizationId}`. */
  disconnectAccount(name: string, organizationId: string, options?: CallOptions): Promise<void>;
}

export interface OpenAPIImportsApi {
  /** List the OpenAPI documents whose operations are skills, by name: `GET /admin/openapi-imports`. */
  listOpenApiImports(
    query?: NonNullable<operations['listOpenApiImports']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['OpenApiImportSummary']>;
  /** Import an OpenAPI document, whose operations become skills: `POST /admin/openapi-imports`. */
  addOpenApiImport(
    body: Schemas['NewOpenApiImport'],
    options?: CallOptions,
  ): Promise<Schemas['OpenApiImport']>;
  /** Get an OpenAPI import with its skills and what has changed of them: `GET /admin/openapi-imports/{name}`. */
  getOpenApiImport(name: string, options?: CallOptions): Promise<Schemas['OpenApiImport']>;
  /** Change an OpenAPI import, and refresh it: `PUT /admin/openapi-imports/{name}`. */
  replaceOpenApiImport(
    name: string,
    body: Schemas['OpenApiImportChange'],
    options?: CallOptions,
  ): Promise<Schemas['OpenApiImport']>;
  /** Remove an OpenAPI import; its skills become inactive: `DELETE /admin/openapi-imports/{name}`. */
  deleteOpenApiImport(name: string, options?: CallOptions): Promise<void>;
  /** Get a version of a skill with all that is pinned of it, to be read before it is activated: `GET /admin/openapi-imports/{name}/skills/{version}/{skillName}`. */
  getOpenApiSkillVersion(
    name: string,
    version: string,
    skillName: string,
    options?: CallOptions,
  ): Promise<Schemas['PinnedRemoteSkillVersion']>;
  /** Compare the skills of an OpenAPI import with its document of now: `POST /admin/openapi-imports/{name}/refresh`. */
  refreshOpenApiImport(name: string, options?: CallOptions): Promise<Schemas['OpenApiImport']>;
  /** Activate versions in quarantine: `POST /admin/openapi-imports/{name}/activate`. */
  activateOpenApiSkills(
    name: string,
    body: Schemas['OpenApiDecisions'],
    options?: CallOptions,
  ): Promise<Schemas['OpenApiImport']>;
  /** Reject versions in quarantine: `POST /admin/openapi-imports/{name}/reject`. */
  rejectOpenApiSkills(
    name: string,
    body: Schemas['OpenApiDecisions'],
    options?: CallOptions,
  ): Promise<Schemas['OpenApiImport']>;
  /** List the operations of a document, to choose from them: `POST /admin/openapi-imports/preview`. */
  previewOpenApiImport(
    body: Schemas['OpenApiPreviewRequest'],
    options?: CallOptions,
  ): Promise<Schemas['OpenApiPreview']>;
}

export interface UsageApi {
  /** Get the tokens that an API key has used, by day: `GET /admin/api-keys/{id}/usage`. */
  getApiKeyUsage(
    id: string,
    query?: NonNullable<operations['getApiKeyUsage']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['ApiKeyUsage']>;
  /** Get the budget of an API key: `GET /admin/api-keys/{id}/budget`. */
  getApiKeyBudget(id: string, options?: CallOptions): Promise<Schemas['ApiKeyBudget']>;
  /** Set the budget of an API key: `PUT /admin/api-keys/{id}/budget`. */
  setApiKeyBudget(
    id: string,
    body: Schemas['BudgetFields'],
    options?: CallOptions,
  ): Promise<Schemas['ApiKeyBudget']>;
  /** Delete the budget of an API key: `DELETE /admin/api-keys/{id}/budget`. */
  deleteApiKeyBudget(id: string, options?: CallOptions): Promise<void>;
  /** List the usage by day and owner: `GET /admin/usage`. */
  list(
    query?: NonNullable<operations['listUsage']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['OwnerUsageOfDay']>;
  /** Get the tokens that an agent has used, by day: `GET /api/agents/{agentId}/usage`. */
  get(
    agentId: string,
    query?: NonNullable<operations['getAgentUsage']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['AgentUsage']>;
  /** Get the budget of an agent: `GET /api/agents/{agentId}/budget`. */
  getAgentBudget(agentId: string, options?: CallOptions): Promise<Schemas['AgentBudget']>;
  /** Set the budget of an agent: `PUT /api/agents/{agentId}/budget`. */
  setAgentBudget(
    agentId: string,
    body: Schemas['BudgetFields'],
    options?: CallOptions,
  ): Promise<Schemas['AgentBudget']>;
  /** Delete the budget of an agent: `DELETE /api/agents/{agentId}/budget`. */
  deleteAgentBudget(agentId: string, options?: CallOptions): Promise<void>;
  /** Get the tokens that a scheduled job has used, by day: `GET /api/scheduled-jobs/{jobId}/usage`. */
  getScheduledJobUsage(
    jobId: string,
    query?: NonNullable<operations['getScheduledJobUsage']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['ScheduledJobUsage']>;
  /** Get the budget of a scheduled job: `GET /api/scheduled-jobs/{jobId}/budget`. */
  getScheduledJobBudget(
    jobId: string,
    options?: CallOptions,
  ): Promise<Schemas['ScheduledJobBudget']>;
  /** Set the budget of a scheduled job: `PUT /api/scheduled-jobs/{jobId}/budget`. */
  setScheduledJobBudget(
    jobId: string,
    body: Schemas['BudgetFields'],
    options?: CallOptions,
  ): Promise<Schemas['ScheduledJobBudget']>;
  /** Delete the budget of a scheduled job: `DELETE /api/scheduled-jobs/{jobId}/budget`. */
  deleteScheduledJobBudget(jobId: string, options?: CallOptions): Promise<void>;
}

export interface QueueApi {
  /** Get what waits in all organizations, and why: `GET /admin/queue`. */
  getOfAll(options?: CallOptions): Promise<Schemas['WholeQueues']>;
  /** Get the weight of an organization in turns: `GET /admin/organizations/{organizationId}/weight`. */
  getOrganizationWeight(
    organizationId: string,
    options?: CallOptions,
  ): Promise<Schemas['OrganizationWeight']>;
  /** Set the weight of an organization in turns: `PUT /admin/organizations/{organizationId}/weight`. */
  setOrganizationWeight(
    organizationId: string,
    body: Schemas['NewWeight'],
    options?: CallOptions,
  ): Promise<Schemas['OrganizationWeight']>;
  /** Get the limit and the pause of an organization: `GET /admin/organizations/{organizationId}/queue`. */
  getOfOrganization(organizationId: string, options?: CallOptions): Promise<Schemas['QueueLimits']>;
  /** Limit how many runs of an organization go on at a time: `PUT /admin/organizations/{organizationId}/queue`. */
  limitOrganization(
    organizationId: string,
    body: Schemas['QueueLimit'],
    options?: CallOptions,
  ): Promise<Schemas['QueueLimits']>;
  /** Limit how many runs of an API key go on at a time: `PUT /admin/api-keys/{id}/queue`. */
  limitApiKey(
    id: string,
    body: Schemas['QueueLimit'],
    options?: CallOptions,
  ): Promise<Schemas['KeyLimit']>;
  /** Pause the work of an organization: `POST /admin/organizations/{organizationId}/pause`. */
  pauseOrganization(organizationId: string, options?: CallOptions): Promise<Schemas['QueueLimits']>;
  /** Pause a version of a skill: `POST /admin/skills/{category}/{version}/{skillName}/pause`. */
  pauseSkill(
    category: string,
    version: string,
    skillName: string,
    options?: CallOptions,
  ): Promise<Schemas['QueuePause']>;
  /** Resume the work of an organization: `POST /admin/organizations/{organizationId}/resume`. */
  resumeOrganization(
    organizationId: string,
    options?: CallOptions,
  ): Promise<Schemas['QueueLimits']>;
  /** Resume a version of a skill: `POST /admin/skills/{category}/{version}/{skillName}/resume`. */
  resumeSkill(
    category: string,
    version: string,
    skillName: string,
    options?: CallOptions,
  ): Promise<Schemas['QueuePause']>;
  /** Get what waits in your organization, and why: `GET /api/queue`. */
  get(options?: CallOptions): Promise<Schemas['OwnQueues']>;
}

export interface JobsApi {
  /** Get whether the prompts of an organization are kept: `GET /admin/organizations/{organizationId}/prompts`. */
  getOrganizationPrompts(
    organizationId: string,
    options?: CallOptions,
  ): Promise<Schemas['PromptSettings']>;
  /** Set whether the prompts of an organization are kept, how long and how many: `PUT /admin/organizations/{organizationId}/prompts`. */
  setOrganizationPrompts(
    organizationId: string,
    body: Schemas['NewPromptSettings'],
    options?: CallOptions,
  ): Promise<Schemas['PromptSettings']>;
  /** List jobs, newest first: `GET /api/jobs`. */
  list(
    query?: NonNullable<operations['listJobs']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['JobListItem']>;
  /** Get a job: `GET /api/jobs/{jobId}`. */
  get(
    jobId: string,
    query?: NonNullable<operations['getJob']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['Job']>;
  /** Change when a queued job may begin, or its priority: `PATCH /api/jobs/{jobId}`. */
  update(
    jobId: string,
    body: Schemas['JobChanges'],
    options?: CallOptions,
  ): Promise<Schemas['Job']>;
  /** Cancel a job: `POST /api/jobs/{jobId}/cancel`. */
  cancel(jobId: string, options?: CallOptions): Promise<Schemas['Job']>;
  /** Run a failed or cancelled job again: `POST /api/jobs/{jobId}/retry`. */
  retry(
    jobId: string,
    body: Schemas['JobRetry'],
    options?: CallOptions,
  ): Promise<Schemas['ListedJob']>;
  /** List the steps of a job: calls of models, their tools, called skills, named steps, waits: `GET /api/jobs/{jobId}/steps`. */
  listSteps(
    jobId: string,
    query?: NonNullable<operations['listJobSteps']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['JobStep']>;
  /** Get what a call of a model was sent: `GET /api/jobs/{jobId}/steps/{step}/prompt`. */
  getStepPrompt(
    jobId: string,
    step: string,
    query?: NonNullable<operations['getStepPrompt']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['StepPrompt']>;
  /** Cancel all jobs that filters name: `POST /api/jobs/cancel`. */
  cancelManyJobs(
    body: Schemas['CancelJobs'],
    options?: CallOptions,
  ): Promise<Schemas['CancelledJobs']>;
  /** Run all failed or cancelled jobs that filters name again: `POST /api/jobs/retry`. */
  retryManyJobs(body: Schemas['RetryJobs'], options?: CallOptions): Promise<Schemas['RetriedJobs']>;
}

export interface TriggersApi {
  /** Start the run of a trigger, or send its event: `POST /api/webhooks/agent/{webhookToken}`. */
  call(
    webhookToken: string,
    body: unknown,
    options?: CallOptions,
  ): Promise<operations['callAgentTrigger']['responses'][202]['content']['application/json']>;
  /** Create a trigger: `POST /api/agent-triggers`. */
  create(
    body: Schemas['NewAgentTrigger'],
    options?: CallOptions,
  ): Promise<Schemas['CreatedAgentTrigger']>;
  /** List triggers, newest first: `GET /api/agent-triggers`. */
  list(
    query?: NonNullable<operations['listAgentTriggers']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['AgentTrigger']>;
  /** Get a trigger: `GET /api/agent-triggers/{triggerId}`. */
  get(
    triggerId: string,
    query?: NonNullable<operations['getAgentTrigger']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['AgentTrigger']>;
  /** Change, deactivate or reactivate a trigger: `PUT /api/agent-triggers/{triggerId}`. */
  update(
    triggerId: string,
    body: Schemas['AgentTriggerChanges'],
    options?: CallOptions,
  ): Promise<Schemas['AgentTrigger']>;
  /** Delete a trigger: `DELETE /api/agent-triggers/{triggerId}`. */
  delete(triggerId: string, options?: CallOptions): Promise<void>;
  /** List the last calls of a trigger, newest first: `GET /api/agent-triggers/{triggerId}/calls`. */
  listCalls(
    triggerId: string,
    query?: NonNullable<operations['listAgentTriggerCalls']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['AgentTriggerCall']>;
}

export interface AccountsApi {
  /** List the accounts that the organization has or could connect, by server: `GET /api/accounts`. */
  list(options?: CallOptions): Pages<Schemas['Account']>;
  /** Get the account of the organization at a server: `GET /api/accounts/{server}`. */
  get(server: string, options?: CallOptions): Promise<Schemas['Account']>;
  /** Disconnect the account of the organization at a server: `DELETE /api/accounts/{server}`. */
  disconnect(server: string, options?: CallOptions): Promise<void>;
  /** Begin to connect an account: where the browser is to go: `POST /api/accounts/{server}/authorize`. */
  beginAuthorization(
    server: string,
    options?: CallOptions,
  ): Promise<Schemas['AccountAuthorization']>;
  /** Complete the connection of an account: `POST /api/accounts/{server}/complete`. */
  completeAuthorization(
    server: string,
    body: Schemas['AccountAuthorizationAnswer'],
    options?: CallOptions,
  ): Promise<Schemas['Account']>;
}

export interface AgentsApi {
  /** Create an agent: `POST /api/agents`. */
  create(body: Schemas['NewAgent'], options?: CallOptions): Promise<Schemas['SavedAgent']>;
  /** List agents, newest first: `GET /api/agents`. */
  list(
    query?: NonNullable<operations['listAgents']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['Agent']>;
  /** Get an agent: `GET /api/agents/{agentId}`. */
  get(
    agentId: string,
    query?: NonNullable<operations['getAgent']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['ShownAgent']>;
  /** Change an agent, pause or resume it: `PUT /api/agents/{agentId}`. */
  update(
    agentId: string,
    body: Schemas['AgentChanges'],
    options?: CallOptions,
  ): Promise<Schemas['SavedAgent']>;
  /** Delete an agent: `DELETE /api/agents/{agentId}`. */
  delete(agentId: string, options?: CallOptions): Promise<void>;
  /** Get the limit and the pause of the queue of an agent: `GET /api/agents/{agentId}/queue`. */
  getQueue(agentId: string, options?: CallOptions): Promise<Schemas['QueueLimits']>;
  /** Limit how many runs of an agent go on at a time: `PUT /api/agents/{agentId}/queue`. */
  limit(
    agentId: string,
    body: Schemas['QueueLimit'],
    options?: CallOptions,
  ): Promise<Schemas['QueueLimits']>;
  /** Pause the queue of an agent: `POST /api/agents/{agentId}/queue/pause`. */
  pauseQueue(agentId: string, options?: CallOptions): Promise<Schemas['QueueLimits']>;
  /** Resume the queue of an agent: `POST /api/agents/{agentId}/queue/resume`. */
  resumeQueue(agentId: string, options?: CallOptions): Promise<Schemas['QueueLimits']>;
  /** List the versions of an agent, newest first: `GET /api/agents/{agentId}/versions`. */
  listVersions(
    agentId: string,
    query?: NonNullable<operations['listAgentVersions']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['AgentVersionSummary']>;
  /** Get a version of an agent, and how it differs from another one: `GET /api/agents/{agentId}/versions/{version}`. */
  getVersion(
    agentId: string,
    version: string,
    query?: NonNullable<operations['getAgentVersion']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['AgentVersion']>;
  /** Go back to a version of an agent: `POST /api/agents/{agentId}/versions/{version}/restore`. */
  restoreVersion(
    agentId: string,
    version: string,
    options?: CallOptions,
  ): Promise<Schemas['SavedAgent']>;
  /** Give an agent a task: `POST /api/agents/{agentId}/tasks`. */
  giveTask(
    agentId: string,
    body: Schemas['NewTask'],
    options?: CallOptions,
  ): Promise<Schemas['Job'] | Schemas['ListedJob']>;
  /** Try an agent with fields that are not saved: `POST /api/agents/{agentId}/trials`. */
  try(
    agentId: string,
    body: Schemas['NewTrial'],
    options?: CallOptions,
  ): Promise<Schemas['Job'] | Schemas['ListedJob']>;
}

export interface MemoriesApi {
  /** List or search the memories of an agent: `GET /api/agents/{agentId}/memories`. */
  list(
    agentId: string,
    query?: NonNullable<operations['listMemories']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['Memory']>;
  /** Add a memory to an agent: `POST /api/agents/{agentId}/memories`. */
  create(
    agentId: string,
    body: Schemas['NewMemory'],
    options?: CallOptions,
  ): Promise<Schemas['Memory']>;
  /** Get a memory: `GET /api/agents/{agentId}/memories/{memoryId}`. */
  get(agentId: string, memoryId: string, options?: CallOptions): Promise<Schemas['Memory']>;
  /** Change a memory: `PUT /api/agents/{agentId}/memories/{memoryId}`. */
  update(
    agentId: string,
    memoryId: string,
    body: Schemas['MemoryChanges'],
    options?: CallOptions,
  ): Promise<Schemas['Memory']>;
  /** Delete a memory: `DELETE /api/agents/{agentId}/memories/{memoryId}`. */
  delete(agentId: string, memoryId: string, options?: CallOptions): Promise<void>;
  /** List the agents that have memories or a profile of a user: `GET /api/users/{userId}/agents`. */
  listAgentsOfUser(
    userId: string,
    query?: NonNullable<operations['listAgentsOfUser']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['AgentOfUser']>;
  /** Get the profile of a user: `GET /api/agents/{agentId}/profiles/{userId}`. */
  getProfile(agentId: string, userId: string, options?: CallOptions): Promise<Schemas['Profile']>;
  /** Write the profile of a user: `PUT /api/agents/{agentId}/profiles/{userId}`. */
  putProfile(
    agentId: string,
    userId: string,
    body: Schemas['ProfileChange'],
    options?: CallOptions,
  ): Promise<Schemas['Profile']>;
  /** Delete the profile of a user: `DELETE /api/agents/{agentId}/profiles/{userId}`. */
  deleteProfile(agentId: string, userId: string, options?: CallOptions): Promise<void>;
}

export interface ConversationsApi {
  /** List conversations, newest first: `GET /api/conversations`. */
  list(
    query?: NonNullable<operations['listConversations']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['ListedConversation']>;
  /** Get a conversation with its tokens: `GET /api/conversations/{id}`. */
  get(id: string, options?: CallOptions): Promise<Schemas['Conversation']>;
  /** List the messages of a conversation, oldest first: `GET /api/conversations/{id}/messages`. */
  listMessages(
    id: string,
    query?: NonNullable<operations['listMessages']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['Message']>;
  /** Get the tokens of a conversation, message by message: `GET /api/conversations/{id}/token-usage`. */
  getTokenUsage(
    id: string,
    query?: NonNullable<operations['getTokenUsage']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['TokenUsage']>;
  /** Fork a conversation at a message: `POST /api/conversations/{id}/fork`. */
  fork(id: string, body: Schemas['NewFork'], options?: CallOptions): Promise<Schemas['Fork']>;
}

export interface FilesApi {
  /** List files, newest first: `GET /api/files`. */
  list(
    query?: NonNullable<operations['listFiles']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['File']>;
  /** Get a file without its bytes: `GET /api/files/{id}`. */
  get(id: string, options?: CallOptions): Promise<Schemas['File']>;
  /** Delete a file with its bytes: `DELETE /api/files/{id}`. */
  delete(id: string, options?: CallOptions): Promise<void>;
}

export interface WebhooksApi {
  /** Create a webhook: `POST /api/agent-webhooks`. */
  create(body: Schemas['NewWebhook'], options?: CallOptions): Promise<Schemas['CreatedWebhook']>;
  /** List all webhooks, newest first: `GET /api/agent-webhooks`. */
  list(options?: CallOptions): Pages<Schemas['Webhook']>;
  /** Get a webhook: `GET /api/agent-webhooks/{webhookId}`. */
  get(webhookId: string, options?: CallOptions): Promise<Schemas['Webhook']>;
  /** Change a webhook, deactivate or reactivate it: `PUT /api/agent-webhooks/{webhookId}`. */
  update(
    webhookId: string,
    body: Schemas['WebhookChanges'],
    options?: CallOptions,
  ): Promise<Schemas['Webhook']>;
  /** Delete a webhook and its deliveries: `DELETE /api/agent-webhooks/{webhookId}`. */
  delete(webhookId: string, options?: CallOptions): Promise<void>;
  /** List the deliveries of a webhook, newest first: `GET /api/agent-webhooks/{webhookId}/deliveries`. */
  listDeliveries(
    webhookId: string,
    query?: NonNullable<operations['listAgentWebhookDeliveries']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['WebhookDelivery']>;
  /** Get a delivery of a webhook with its body: `GET /api/agent-webhooks/{webhookId}/deliveries/{deliveryId}`. */
  getDelivery(
    webhookId: string,
    deliveryId: string,
    options?: CallOptions,
  ): Promise<Schemas['WebhookDeliveryWithBody']>;
  /** List the deliveries of a job, newest first: `GET /api/jobs/{jobId}/deliveries`. */
  listJobDeliveries(
    jobId: string,
    query?: NonNullable<operations['listJobDeliveries']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['JobDelivery']>;
  /** Deliver an event again: `POST /api/agent-webhooks/{webhookId}/deliveries/{deliveryId}/redeliver`. */
  redeliverDelivery(
    webhookId: string,
    deliveryId: string,
    options?: CallOptions,
  ): Promise<Schemas['WebhookDelivery']>;
  /** Deliver a sample event: `POST /api/agent-webhooks/{webhookId}/test`. */
  test(webhookId: string, options?: CallOptions): Promise<Schemas['WebhookDelivery']>;
}

export interface BatchesApi {
  /** Run skills many times: `POST /api/batches`. */
  createBatch(body: Schemas['NewBatch'], options?: CallOptions): Promise<Schemas['AcceptedBatch']>;
  /** List batches, newest first: `GET /api/batches`. */
  list(
    query?: NonNullable<operations['listBatches']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['BatchSummary']>;
  /** Get a batch with the counts of its jobs: `GET /api/batches/{batchId}`. */
  getBatch(batchId: string, options?: CallOptions): Promise<Schemas['Batch']>;
  /** Cancel the jobs of a batch that have not ended: `POST /api/batches/{batchId}/cancel`. */
  cancelBatch(batchId: string, options?: CallOptions): Promise<Schemas['CancelledJobs']>;
  /** Run the failed jobs of a batch again: `POST /api/batches/{batchId}/retry`. */
  retryBatch(batchId: string, options?: CallOptions): Promise<Schemas['RetriedJobs']>;
}

export interface ApprovalsApi {
  /** List approvals, newest first: `GET /api/approvals`. */
  list(
    query?: NonNullable<operations['listApprovals']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['Approval']>;
  /** Get an approval: `GET /api/approvals/{approvalId}`. */
  get(approvalId: string, options?: CallOptions): Promise<Schemas['Approval']>;
  /** Approve: the run that waits goes on: `POST /api/approvals/{approvalId}/approve`. */
  approve(
    approvalId: string,
    body: Schemas['ApprovalGrant'],
    options?: CallOptions,
  ): Promise<Schemas['Approval']>;
  /** Reject: the run that waits is told so, with the reason: `POST /api/approvals/{approvalId}/reject`. */
  reject(
    approvalId: string,
    body: Schemas['ApprovalDecision'],
    options?: CallOptions,
  ): Promise<Schemas['Approval']>;
}

export interface UserDataApi {
  /** Take out all that is kept of a user: `GET /api/users/{userId}/data`. */
  export(userId: string, options?: CallOptions): Promise<Schemas['UserDataLine']>;
  /** Erase all that is kept of a user: `DELETE /api/users/{userId}/data`. */
  erase(
    userId: string,
    query?: NonNullable<operations['eraseUserData']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['ErasedUserData']>;
}

export interface EventsApi {
  /** Send an event to the runs that wait for it: `POST /api/events`. */
  send(body: Schemas['NewRunEvent'], options?: CallOptions): Promise<Schemas['RunEventReceipt']>;
}

export interface ScheduledJobsApi {
  /** Create a scheduled job: `POST /api/scheduled-jobs`. */
  create(
    body: Schemas['NewScheduledJob'],
    options?: CallOptions,
  ): Promise<Schemas['CreatedScheduledJob']>;
  /** List all scheduled jobs, newest first: `GET /api/scheduled-jobs`. */
  list(
    query?: NonNullable<operations['listScheduledJobs']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['ListedScheduledJob']>;
  /** Show when a cron expression matches next: `GET /api/scheduled-jobs/preview`. */
  previewCronExpression(
    query: NonNullable<operations['previewCronExpression']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['CronPreview']>;
  /** Get a scheduled job: `GET /api/scheduled-jobs/{jobId}`. */
  get(
    jobId: string,
    query?: NonNullable<operations['getScheduledJob']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['ScheduledJob']>;
  /** Change, disable or enable a scheduled job: `PUT /api/scheduled-jobs/{jobId}`. */
  update(
    jobId: string,
    body: Schemas['ScheduledJobChanges'],
    options?: CallOptions,
  ): Promise<Schemas['ScheduledJob']>;
  /** Delete a scheduled job: `DELETE /api/scheduled-jobs/{jobId}`. */
  delete(jobId: string, options?: CallOptions): Promise<void>;
  /** Run a scheduled job at once: `POST /api/scheduled-jobs/{jobId}/run`. */
  run(jobId: string, options?: CallOptions): Promise<Schemas['ListedJob']>;
  /** List the slots with their outcomes, newest first: `GET /api/scheduled-jobs/{jobId}/runs`. */
  listScheduledRuns(
    jobId: string,
    query?: NonNullable<operations['listScheduledRuns']['parameters']['query']>,
    options?: CallOptions,
  ): Pages<Schemas['ScheduledRun']>;
}

export interface StatisticsApi {
  /** Get counts, durations and tokens of runs in the last hour or day: `GET /api/statistics`. */
  get(
    query?: NonNullable<operations['getStatistics']['parameters']['query']>,
    options?: CallOptions,
  ): Promise<Schemas['Statistics']>;
}

/** The operations of the API, by what they are about. */
export interface Api {
  readonly operations: OperationsApi;
  readonly apiKeys: ApiKeysApi;
  readonly registry: RegistryApi;
  readonly credentials: CredentialsApi;
  readonly mcpServers: McpServersApi;
  readonly openAPIImports: OpenAPIImportsApi;
  readonly usage: UsageApi;
  readonly queue: QueueApi;
  readonly jobs: JobsApi;
  readonly triggers: TriggersApi;
  readonly accounts: AccountsApi;
  readonly agents: AgentsApi;
  readonly memories: MemoriesApi;
  readonly conversations: ConversationsApi;
  readonly files: FilesApi;
  readonly webhooks: WebhooksApi;
  readonly batches: BatchesApi;
  readonly approvals: ApprovalsApi;
  readonly userData: UserDataApi;
  readonly events: EventsApi;
  readonly scheduledJobs: ScheduledJobsApi;
  readonly statistics: StatisticsApi;
}

/** What webhooks are sent. */
export type WebhookEvent =
  | Schemas['SkillCompletedEvent']
  | Schemas['SkillFailedEvent']
  | Schemas['AgentErrorEvent']
  | Schemas['AgentStatusChangedEvent']
  | Schemas['AgentCreatedEvent']
  | Schemas['AgentDeletedEvent']
  | Schemas['BatchCompletedEvent']
  | Schemas['ConversationCreatedEvent']
  | Schemas['ScheduledJobCompletedEvent']
  | Schemas['ScheduledJobFailedEvent']
  | Schemas['ApprovalRequestedEvent']
  | Schemas['ApprovalDecidedEvent'];

export const operationTable: OperationTable = {
  operations: {
    getHealth: {
      verb: 'GET',
      path: '/health',
      credential: 'none',
      result: 'json',
    },
    getMetrics: {
      verb: 'GET',
      path: '/metrics',
      credential: 'none',
      result: 'text',
    },
    getOpenApi: {
      verb: 'GET',
      path: '/openapi.json',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    listProcesses: {
      verb: 'GET',
      path: '/admin/processes',
      credential: 'admin',
      result: 'json',
    },
  },
  apiKeys: {
    create: {
      verb: 'POST',
      path: '/admin/api-keys',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    list: {
      verb: 'GET',
      path: '/admin/api-keys',
      credential: 'admin',
      result: 'array',
    },
    revoke: {
      verb: 'DELETE',
      path: '/admin/api-keys/{id}',
      credential: 'admin',
      input: 'query',
      result: 'json',
    },
  },
  registry: {
    listLeftOutSkills: {
      verb: 'GET',
      path: '/admin/left-out-skills',
      credential: 'admin',
      result: 'array',
    },
    listAllSkills: {
      verb: 'GET',
      path: '/admin/skills',
      credential: 'admin',
      result: 'array',
    },
    getAnySkill: {
      verb: 'GET',
      path: '/admin/skills/{category}/{version}/{skillName}',
      credential: 'admin',
      input: 'query',
      result: 'json',
    },
    deprecate: {
      verb: 'POST',
      path: '/admin/skills/{category}/{version}/{skillName}/deprecate',
      credential: 'admin',
      result: 'json',
    },
    activate: {
      verb: 'POST',
      path: '/admin/skills/{category}/{version}/{skillName}/activate',
      credential: 'admin',
      result: 'json',
    },
    getReload: {
      verb: 'GET',
      path: '/admin/skills/reload',
      credential: 'admin',
      result: 'json',
    },
    reload: {
      verb: 'POST',
      path: '/admin/skills/reload',
      credential: 'admin',
      result: 'json',
    },
    list: {
      verb: 'GET',
      path: '/api/skills',
      credential: 'key',
      input: 'query',
      result: 'array',
    },
    get: {
      verb: 'GET',
      path: '/api/skills/{category}/{version}/{skillName}',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    getConfig: {
      verb: 'GET',
      path: '/api/skills/{id}/config',
      credential: 'key',
      result: 'json',
    },
    changeConfig: {
      verb: 'PUT',
      path: '/api/skills/{id}/config',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    clearConfig: {
      verb: 'DELETE',
      path: '/api/skills/{id}/config',
      credential: 'key',
      result: 'nothing',
    },
    getUsages: {
      verb: 'GET',
      path: '/api/skills/{category}/{version}/{skillName}/usages',
      credential: 'key',
      result: 'json',
    },
  },
  credentials: {
    list: {
      verb: 'GET',
      path: '/admin/organizations/{organizationId}/credentials',
      credential: 'admin',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    replace: {
      verb: 'PUT',
      path: '/admin/organizations/{organizationId}/credentials/{provider}',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    delete: {
      verb: 'DELETE',
      path: '/admin/organizations/{organizationId}/credentials/{provider}',
      credential: 'admin',
      result: 'nothing',
    },
  },
  mcpServers: {
    list: {
      verb: 'GET',
      path: '/admin/mcp-servers',
      credential: 'admin',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    add: {
      verb: 'POST',
      path: '/admin/mcp-servers',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    get: {
      verb: 'GET',
      path: '/admin/mcp-servers/{name}',
      credential: 'admin',
      result: 'json',
    },
    replace: {
      verb: 'PUT',
      path: '/admin/mcp-servers/{name}',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    delete: {
      verb: 'DELETE',
      path: '/admin/mcp-servers/{name}',
      credential: 'admin',
      result: 'nothing',
    },
    getMcpSkillVersion: {
      verb: 'GET',
      path: '/admin/mcp-servers/{name}/skills/{version}/{skillName}',
      credential: 'admin',
      result: 'json',
    },
    refresh: {
      verb: 'POST',
      path: '/admin/mcp-servers/{name}/refresh',
      credential: 'admin',
      result: 'json',
    },
    activateMcpSkill: {
      verb: 'POST',
      path: '/admin/mcp-servers/{name}/skills/{version}/{skillName}/activate',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    rejectMcpSkill: {
      verb: 'POST',
      path: '/admin/mcp-servers/{name}/skills/{version}/{skillName}/reject',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    listAccounts: {
      verb: 'GET',
      path: '/admin/mcp-servers/{name}/accounts',
      credential: 'admin',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    disconnectAccount: {
      verb: 'DELETE',
      path: '/admin/mcp-servers/{name}/accounts/{organizationId}',
      credential: 'admin',
      result: 'nothing',
    },
  },
  openAPIImports: {
    listOpenApiImports: {
      verb: 'GET',
      path: '/admin/openapi-imports',
      credential: 'admin',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    addOpenApiImport: {
      verb: 'POST',
      path: '/admin/openapi-imports',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    getOpenApiImport: {
      verb: 'GET',
      path: '/admin/openapi-imports/{name}',
      credential: 'admin',
      result: 'json',
    },
    replaceOpenApiImport: {
      verb: 'PUT',
      path: '/admin/openapi-imports/{name}',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    deleteOpenApiImport: {
      verb: 'DELETE',
      path: '/admin/openapi-imports/{name}',
      credential: 'admin',
      result: 'nothing',
    },
    getOpenApiSkillVersion: {
      verb: 'GET',
      path: '/admin/openapi-imports/{name}/skills/{version}/{skillName}',
      credential: 'admin',
      result: 'json',
    },
    refreshOpenApiImport: {
      verb: 'POST',
      path: '/admin/openapi-imports/{name}/refresh',
      credential: 'admin',
      result: 'json',
    },
    activateOpenApiSkills: {
      verb: 'POST',
      path: '/admin/openapi-imports/{name}/activate',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    rejectOpenApiSkills: {
      verb: 'POST',
      path: '/admin/openapi-imports/{name}/reject',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    previewOpenApiImport: {
      verb: 'POST',
      path: '/admin/openapi-imports/preview',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
  },
  usage: {
    getApiKeyUsage: {
      verb: 'GET',
      path: '/admin/api-keys/{id}/usage',
      credential: 'admin',
      input: 'query',
      result: 'json',
    },
    getApiKeyBudget: {
      verb: 'GET',
      path: '/admin/api-keys/{id}/budget',
      credential: 'admin',
      result: 'json',
    },
    setApiKeyBudget: {
      verb: 'PUT',
      path: '/admin/api-keys/{id}/budget',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    deleteApiKeyBudget: {
      verb: 'DELETE',
      path: '/admin/api-keys/{id}/budget',
      credential: 'admin',
      result: 'nothing',
    },
    list: {
      verb: 'GET',
      path: '/admin/usage',
      credential: 'admin',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    get: {
      verb: 'GET',
      path: '/api/agents/{agentId}/usage',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    getAgentBudget: {
      verb: 'GET',
      path: '/api/agents/{agentId}/budget',
      credential: 'key',
      result: 'json',
    },
    setAgentBudget: {
      verb: 'PUT',
      path: '/api/agents/{agentId}/budget',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    deleteAgentBudget: {
      verb: 'DELETE',
      path: '/api/agents/{agentId}/budget',
      credential: 'key',
      result: 'nothing',
    },
    getScheduledJobUsage: {
      verb: 'GET',
      path: '/api/scheduled-jobs/{jobId}/usage',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    getScheduledJobBudget: {
      verb: 'GET',
      path: '/api/scheduled-jobs/{jobId}/budget',
      credential: 'key',
      result: 'json',
    },
    setScheduledJobBudget: {
      verb: 'PUT',
      path: '/api/scheduled-jobs/{jobId}/budget',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    deleteScheduledJobBudget: {
      verb: 'DELETE',
      path: '/api/scheduled-jobs/{jobId}/budget',
      credential: 'key',
      result: 'nothing',
    },
  },
  queue: {
    getOfAll: {
      verb: 'GET',
      path: '/admin/queue',
      credential: 'admin',
      result: 'json',
    },
    getOrganizationWeight: {
      verb: 'GET',
      path: '/admin/organizations/{organizationId}/weight',
      credential: 'admin',
      result: 'json',
    },
    setOrganizationWeight: {
      verb: 'PUT',
      path: '/admin/organizations/{organizationId}/weight',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    getOfOrganization: {
      verb: 'GET',
      path: '/admin/organizations/{organizationId}/queue',
      credential: 'admin',
      result: 'json',
    },
    limitOrganization: {
      verb: 'PUT',
      path: '/admin/organizations/{organizationId}/queue',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    limitApiKey: {
      verb: 'PUT',
      path: '/admin/api-keys/{id}/queue',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    pauseOrganization: {
      verb: 'POST',
      path: '/admin/organizations/{organizationId}/pause',
      credential: 'admin',
      result: 'json',
    },
    pauseSkill: {
      verb: 'POST',
      path: '/admin/skills/{category}/{version}/{skillName}/pause',
      credential: 'admin',
      result: 'json',
    },
    resumeOrganization: {
      verb: 'POST',
      path: '/admin/organizations/{organizationId}/resume',
      credential: 'admin',
      result: 'json',
    },
    resumeSkill: {
      verb: 'POST',
      path: '/admin/skills/{category}/{version}/{skillName}/resume',
      credential: 'admin',
      result: 'json',
    },
    get: {
      verb: 'GET',
      path: '/api/queue',
      credential: 'key',
      result: 'json',
    },
  },
  jobs: {
    getOrganizationPrompts: {
      verb: 'GET',
      path: '/admin/organizations/{organizationId}/prompts',
      credential: 'admin',
      result: 'json',
    },
    setOrganizationPrompts: {
      verb: 'PUT',
      path: '/admin/organizations/{organizationId}/prompts',
      credential: 'admin',
      input: 'body',
      result: 'json',
    },
    list: {
      verb: 'GET',
      path: '/api/jobs',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    get: {
      verb: 'GET',
      path: '/api/jobs/{jobId}',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    update: {
      verb: 'PATCH',
      path: '/api/jobs/{jobId}',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    cancel: {
      verb: 'POST',
      path: '/api/jobs/{jobId}/cancel',
      credential: 'key',
      result: 'json',
    },
    retry: {
      verb: 'POST',
      path: '/api/jobs/{jobId}/retry',
      credential: 'key',
      input: 'body',
      isKeyed: true,
      result: 'json',
    },
    listSteps: {
      verb: 'GET',
      path: '/api/jobs/{jobId}/steps',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    getStepPrompt: {
      verb: 'GET',
      path: '/api/jobs/{jobId}/steps/{step}/prompt',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    cancelManyJobs: {
      verb: 'POST',
      path: '/api/jobs/cancel',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    retryManyJobs: {
      verb: 'POST',
      path: '/api/jobs/retry',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
  },
  triggers: {
    call: {
      verb: 'POST',
      path: '/api/webhooks/agent/{webhookToken}',
      credential: 'none',
      input: 'body',
      isKeyed: true,
      result: 'json',
    },
    create: {
      verb: 'POST',
      path: '/api/agent-triggers',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    list: {
      verb: 'GET',
      path: '/api/agent-triggers',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    get: {
      verb: 'GET',
      path: '/api/agent-triggers/{triggerId}',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    update: {
      verb: 'PUT',
      path: '/api/agent-triggers/{triggerId}',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    delete: {
      verb: 'DELETE',
      path: '/api/agent-triggers/{triggerId}',
      credential: 'key',
      result: 'nothing',
    },
    listCalls: {
      verb: 'GET',
      path: '/api/agent-triggers/{triggerId}/calls',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
  },
  accounts: {
    list: {
      verb: 'GET',
      path: '/api/accounts',
      credential: 'key',
      result: 'page',
    },
    get: {
      verb: 'GET',
      path: '/api/accounts/{server}',
      credential: 'key',
      result: 'json',
    },
    disconnect: {
      verb: 'DELETE',
      path: '/api/accounts/{server}',
      credential: 'key',
      result: 'nothing',
    },
    beginAuthorization: {
      verb: 'POST',
      path: '/api/accounts/{server}/authorize',
      credential: 'key',
      result: 'json',
    },
    completeAuthorization: {
      verb: 'POST',
      path: '/api/accounts/{server}/complete',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
  },
  agents: {
    create: {
      verb: 'POST',
      path: '/api/agents',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    list: {
      verb: 'GET',
      path: '/api/agents',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    get: {
      verb: 'GET',
      path: '/api/agents/{agentId}',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    update: {
      verb: 'PUT',
      path: '/api/agents/{agentId}',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    delete: {
      verb: 'DELETE',
      path: '/api/agents/{agentId}',
      credential: 'key',
      result: 'nothing',
    },
    getQueue: {
      verb: 'GET',
      path: '/api/agents/{agentId}/queue',
      credential: 'key',
      result: 'json',
    },
    limit: {
      verb: 'PUT',
      path: '/api/agents/{agentId}/queue',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    pauseQueue: {
      verb: 'POST',
      path: '/api/agents/{agentId}/queue/pause',
      credential: 'key',
      result: 'json',
    },
    resumeQueue: {
      verb: 'POST',
      path: '/api/agents/{agentId}/queue/resume',
      credential: 'key',
      result: 'json',
    },
    listVersions: {
      verb: 'GET',
      path: '/api/agents/{agentId}/versions',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    getVersion: {
      verb: 'GET',
      path: '/api/agents/{agentId}/versions/{version}',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    restoreVersion: {
      verb: 'POST',
      path: '/api/agents/{agentId}/versions/{version}/restore',
      credential: 'key',
      result: 'json',
    },
    giveTask: {
      verb: 'POST',
      path: '/api/agents/{agentId}/tasks',
      credential: 'key',
      input: 'body',
      isKeyed: true,
      result: 'json',
    },
    try: {
      verb: 'POST',
      path: '/api/agents/{agentId}/trials',
      credential: 'key',
      input: 'body',
      isKeyed: true,
      result: 'json',
    },
  },
  memories: {
    list: {
      verb: 'GET',
      path: '/api/agents/{agentId}/memories',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    create: {
      verb: 'POST',
      path: '/api/agents/{agentId}/memories',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    get: {
      verb: 'GET',
      path: '/api/agents/{agentId}/memories/{memoryId}',
      credential: 'key',
      result: 'json',
    },
    update: {
      verb: 'PUT',
      path: '/api/agents/{agentId}/memories/{memoryId}',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    delete: {
      verb: 'DELETE',
      path: '/api/agents/{agentId}/memories/{memoryId}',
      credential: 'key',
      result: 'nothing',
    },
    listAgentsOfUser: {
      verb: 'GET',
      path: '/api/users/{userId}/agents',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    getProfile: {
      verb: 'GET',
      path: '/api/agents/{agentId}/profiles/{userId}',
      credential: 'key',
      result: 'json',
    },
    putProfile: {
      verb: 'PUT',
      path: '/api/agents/{agentId}/profiles/{userId}',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    deleteProfile: {
      verb: 'DELETE',
      path: '/api/agents/{agentId}/profiles/{userId}',
      credential: 'key',
      result: 'nothing',
    },
  },
  conversations: {
    list: {
      verb: 'GET',
      path: '/api/conversations',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'array',
    },
    get: {
      verb: 'GET',
      path: '/api/conversations/{id}',
      credential: 'key',
      result: 'json',
    },
    listMessages: {
      verb: 'GET',
      path: '/api/conversations/{id}/messages',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'array',
    },
    getTokenUsage: {
      verb: 'GET',
      path: '/api/conversations/{id}/token-usage',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    fork: {
      verb: 'POST',
      path: '/api/conversations/{id}/fork',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
  },
  files: {
    list: {
      verb: 'GET',
      path: '/api/files',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    get: {
      verb: 'GET',
      path: '/api/files/{id}',
      credential: 'key',
      result: 'json',
    },
    delete: {
      verb: 'DELETE',
      path: '/api/files/{id}',
      credential: 'key',
      result: 'nothing',
    },
  },
  webhooks: {
    create: {
      verb: 'POST',
      path: '/api/agent-webhooks',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    list: {
      verb: 'GET',
      path: '/api/agent-webhooks',
      credential: 'key',
      result: 'array',
    },
    get: {
      verb: 'GET',
      path: '/api/agent-webhooks/{webhookId}',
      credential: 'key',
      result: 'json',
    },
    update: {
      verb: 'PUT',
      path: '/api/agent-webhooks/{webhookId}',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    delete: {
      verb: 'DELETE',
      path: '/api/agent-webhooks/{webhookId}',
      credential: 'key',
      result: 'nothing',
    },
    listDeliveries: {
      verb: 'GET',
      path: '/api/agent-webhooks/{webhookId}/deliveries',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    getDelivery: {
      verb: 'GET',
      path: '/api/agent-webhooks/{webhookId}/deliveries/{deliveryId}',
      credential: 'key',
      result: 'json',
    },
    listJobDeliveries: {
      verb: 'GET',
      path: '/api/jobs/{jobId}/deliveries',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    redeliverDelivery: {
      verb: 'POST',
      path: '/api/agent-webhooks/{webhookId}/deliveries/{deliveryId}/redeliver',
      credential: 'key',
      result: 'json',
    },
    test: {
      verb: 'POST',
      path: '/api/agent-webhooks/{webhookId}/test',
      credential: 'key',
      result: 'json',
    },
  },
  batches: {
    createBatch: {
      verb: 'POST',
      path: '/api/batches',
      credential: 'key',
      input: 'body',
      isKeyed: true,
      result: 'json',
    },
    list: {
      verb: 'GET',
      path: '/api/batches',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    getBatch: {
      verb: 'GET',
      path: '/api/batches/{batchId}',
      credential: 'key',
      result: 'json',
    },
    cancelBatch: {
      verb: 'POST',
      path: '/api/batches/{batchId}/cancel',
      credential: 'key',
      result: 'json',
    },
    retryBatch: {
      verb: 'POST',
      path: '/api/batches/{batchId}/retry',
      credential: 'key',
      result: 'json',
    },
  },
  approvals: {
    list: {
      verb: 'GET',
      path: '/api/approvals',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
    get: {
      verb: 'GET',
      path: '/api/approvals/{approvalId}',
      credential: 'key',
      result: 'json',
    },
    approve: {
      verb: 'POST',
      path: '/api/approvals/{approvalId}/approve',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    reject: {
      verb: 'POST',
      path: '/api/approvals/{approvalId}/reject',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
  },
  userData: {
    export: {
      verb: 'GET',
      path: '/api/users/{userId}/data',
      credential: 'key',
      result: 'json',
    },
    erase: {
      verb: 'DELETE',
      path: '/api/users/{userId}/data',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
  },
  events: {
    send: {
      verb: 'POST',
      path: '/api/events',
      credential: 'key',
      input: 'body',
      isKeyed: true,
      result: 'json',
    },
  },
  scheduledJobs: {
    create: {
      verb: 'POST',
      path: '/api/scheduled-jobs',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    list: {
      verb: 'GET',
      path: '/api/scheduled-jobs',
      credential: 'key',
      input: 'query',
      result: 'array',
    },
    previewCronExpression: {
      verb: 'GET',
      path: '/api/scheduled-jobs/preview',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    get: {
      verb: 'GET',
      path: '/api/scheduled-jobs/{jobId}',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
    update: {
      verb: 'PUT',
      path: '/api/scheduled-jobs/{jobId}',
      credential: 'key',
      input: 'body',
      result: 'json',
    },
    delete: {
      verb: 'DELETE',
      path: '/api/scheduled-jobs/{jobId}',
      credential: 'key',
      result: 'nothing',
    },
    run: {
      verb: 'POST',
      path: '/api/scheduled-jobs/{jobId}/run',
      credential: 'key',
      isKeyed: true,
      result: 'json',
    },
    listScheduledRuns: {
      verb: 'GET',
      path: '/api/scheduled-jobs/{jobId}/runs',
      credential: 'key',
      input: 'query',
      isPaged: true,
      result: 'page',
    },
  },
  statistics: {
    get: {
      verb: 'GET',
      path: '/api/statistics',
      credential: 'key',
      input: 'query',
      result: 'json',
    },
  },
};
