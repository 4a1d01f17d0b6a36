// Starts Swagger UI on the description next to this page. It is a separate file
// because the page's Content-Security-Policy allows no inline script.
"use strict";

// Swagger UI has a dark look and leaves it to the page to ask for it.
const dark = matchMedia("(prefers-color-scheme: dark)");
const applyLook = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", applyLook);
applyLook();

function start(description) {
  SwaggerUIBundle({
    // The description's relative servers are resolved against the page's own
    // address, which is next to it and has every prefix.
    spec: description,
    dom_id: "#swagger-ui",
    presets: [SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
    deepLinking: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    persistAuthorization: false,
    // Nothing is sent to a public validator.
    validatorUrl: null,
  });
}

fetch(new URL("openapi.json", document.baseURI))
  .then((response) => response.ok ? response.json() : Promise.reject(new Error(`the archive answers ${response.status}`)))
  .then(start)
  .catch((error) => {
    document.getElementById("swagger-ui").textContent = `The API description could not be read: ${error.message}`;
  });
