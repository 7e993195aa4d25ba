import { Menu, MenuButton, MenuItem, MenuProvider } from "@ariakit/react";

import { api, signedOut } from "../api/client";
import { useLimits, useSession } from "../api/session";
import { Text } from "../parts/Text";

/** Who is signed in, what they may do, and the way out. */
export function SessionMenu() {
  const session = useSession();
  const limits = useLimits();
  if (session === undefined) return null;
  const signOut = async () => {
    await api.DELETE("/api/v1/session");
    signedOut();
  };
  return (
    <MenuProvider>
      <MenuButton className="quiet session">
        <Text>{session.name}</Text>
      </MenuButton>
      <Menu className="menu" gutter={4} portal={false}>
        <div className="menu-text">
          <p>{session.required ? "Signed in with a token." : "No token is needed on this machine."}</p>
          <p className="muted">May: {session.scopes.join(", ")}</p>
          {limits !== null && (
            <p className="muted">
              Limited to <Text>{limits}</Text>
            </p>
          )}
        </div>
        {session.required && (
          <MenuItem className="menu-item" onClick={() => void signOut()}>
            Sign out
          </MenuItem>
        )}
      </Menu>
    </MenuProvider>
  );
}
