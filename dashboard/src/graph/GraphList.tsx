import { Link } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { TableBox } from "../parts/TableBox";
import { Text } from "../parts/Text";

function stateOf(node: Schemas["Node"], otherwise: string): string {
  if (node.hidden) return "beyond your token";
  return node.known ? (node.word ?? otherwise) : "not there";
}

/** The graph as a list: each pipeline, what it runs after, and what of that is there. */
export function GraphList({ graph, date }: { graph: Schemas["Graph"]; date: string | undefined }) {
  return (
    <TableBox label="The graph as a list">
      <table>
        <thead>
          <tr>
            <th>Pipeline</th>
            <th>Owner</th>
            <th>{date === undefined ? "Known" : `Run of ${date}`}</th>
            <th>Runs after</th>
          </tr>
        </thead>
        <tbody>
          {graph.nodes.map((node) => (
            <tr key={node.id}>
              <th scope="row">
                {node.hidden ? (
                  <Text>{node.id}</Text>
                ) : (
                  <Link to="/pipelines/$pipeline" params={{ pipeline: node.id }}>
                    <Text>{node.id}</Text>
                  </Link>
                )}
              </th>
              <td>
                <Text>{node.owner}</Text>
              </td>
              <td data-word={node.word ?? undefined}>
                {stateOf(node, date === undefined ? "yes" : "not opened")}
                {node.sla === null || node.sla === undefined ? "" : ` · ${node.sla}`}
              </td>
              <td>
                {graph.edges
                  .filter((edge) => edge.to === node.id)
                  .map((edge) => (
                    <div key={edge.from}>
                      <Text>{edge.from}</Text>{" "}
                      <span className="muted">
                        {edge.require}
                        {edge.marker === null || edge.marker === undefined ? "" : `, marker ${edge.marker}`}
                      </span>
                    </div>
                  ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableBox>
  );
}
