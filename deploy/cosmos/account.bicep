// An account, a database and a container of Azure Cosmos DB that the broker takes as `cosmos.memory`.
//
//   az deployment group create --resource-group GROUP --template-file deploy/cosmos/account.bicep \
//       --parameters accountName=NAME principalId=OBJECT_ID
//
// The broker makes none of this, and refuses what differs in what is marked with *. The marker is
// written afterwards, by `broker init-resource` (deploy/runbook.md).

@description('Name of the account, 3 to 44 characters; its endpoint is https://NAME.documents.azure.com.')
param accountName string

@description('Object id of the identity that serves. Whoever runs init-resource needs the same role.')
param principalId string

param location string = resourceGroup().location
param databaseName string = 'knowledge'
param containerName string = 'memory'

@description('Request units per second at most.')
param maxThroughput int = 4000

resource account 'Microsoft.DocumentDB/databaseAccounts@2024-05-15' = {
  name: accountName
  location: location
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    // * Strong with one region. With a second one to read from, 'BoundedStaleness'; nothing weaker.
    consistencyPolicy: {
      defaultConsistencyLevel: 'Strong'
    }
    // * One region takes writes.
    enableMultipleWriteLocations: false
    locations: [
      { locationName: location, failoverPriority: 0 }
    ]
    // A key lets in whoever has it, and to everything. The option `key` needs this to be false.
    disableLocalAuth: true
    minimalTlsVersion: 'Tls12'
    backupPolicy: {
      type: 'Continuous'
    }
  }
}

resource database 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2024-05-15' = {
  parent: account
  name: databaseName
  properties: {
    resource: {
      id: databaseName
    }
  }
}

resource container 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-05-15' = {
  parent: database
  name: containerName
  properties: {
    options: {
      autoscaleSettings: { maxThroughput: maxThroughput }
    }
    // There is no defaultTtl *: nothing expires.
    resource: {
      id: containerName
      // *
      partitionKey: {
        paths: [
          '/projectId'
        ]
        kind: 'Hash'
        version: 2
      }
      indexingPolicy: {
        // *
        indexingMode: 'consistent'
        automatic: true
        // Content is not indexed. * /last, /sequence and /recordId are.
        includedPaths: [
          { path: '/doc/?' }
          { path: '/recordId/?' }
          { path: '/revision/?' }
          { path: '/agentId/?' }
          { path: '/kind/?' }
          { path: '/state/?' }
          { path: '/trust/?' }
          { path: '/weight/?' }
          { path: '/newest/?' }
          { path: '/place/?' }
          { path: '/ref/?' }
          { path: '/first/?' }
          { path: '/last/?' }
          { path: '/isLive/?' }
          { path: '/isMoved/?' }
          { path: '/runId/?' }
          { path: '/sequence/?' }
          { path: '/delivered/?' }
          { path: '/termsLength/?' }
          { path: '/model/?' }
          { path: '/tags/[]/?' }
          { path: '/enters/[]/?' }
          { path: '/ids/[]/?' }
        ]
        excludedPaths: [
          { path: '/*' }
          { path: '/"_etag"/?' }
        ]
        // * The order of a search, and that of what may enter a context.
        compositeIndexes: [
          [
            { path: '/newest', order: 'ascending' }
            { path: '/recordId', order: 'ascending' }
          ]
          [
            { path: '/place', order: 'ascending' }
            { path: '/recordId', order: 'ascending' }
          ]
        ]
      }
    }
  }
}

// The built-in role to read and write data; it makes no database and no container.
resource access 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2024-05-15' = {
  parent: account
  name: guid(account.id, principalId)
  properties: {
    roleDefinitionId: '${account.id}/sqlRoleDefinitions/00000000-0000-0000-0000-000000000002'
    principalId: principalId
    scope: account.id
  }
}

output endpoint string = account.properties.documentEndpoint
