/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contract cases: capture and replay.
 */
#include "contract.h"

#define GROUP "capture"
#define N 5003

static struct tandem_graph *captured(struct suite *suite, struct vector *a,
                                     struct vector *b)
{
    struct tandem_graph *graph = NULL;
    float one = 1.0f;

    if (!EXPECT_OK(suite, suite->api.capture_begin(suite->stream)))
        return NULL;
    EXPECT_OK(suite, launch_add(suite, NULL, a, a, 1.0));
    EXPECT_OK(suite, suite->api.copy(suite->stream, b->buffer, 0, a->buffer, 0,
                                     N * sizeof(float)));
    EXPECT_OK(suite, suite->api.fill(suite->stream, b->buffer, 0, 0, &one, 4));
    EXPECT_OK(suite, launch_add(suite, NULL, b, b, 10.0));
    EXPECT_OK(suite, suite->api.capture_end(suite->stream, &graph));
    return graph;
}

static void case_replay(struct suite *suite)
{
    struct tandem_graph *graph = NULL;
    struct vector a = {0}, b = {0};

    if (!case_begin(suite, GROUP, "recorded, not run; replayed three times"))
        return;
    if (needs_cap(suite, TANDEM_CAP_CAPTURE, "capture") &&
        require_add(suite, NULL) &&
        EXPECT(suite, suite->api.capture_begin != NULL) &&
        vector_new(suite, NULL, NULL, &a, N, 0.0f, 1.0f) &&
        vector_new(suite, NULL, NULL, &b, N, 0.0f, 0.0f)) {
        graph = captured(suite, &a, &b);
        expect_vector(suite, NULL, &a, 0.0f, 1.0f, "a after the capture");
        for (int i = 0; graph != NULL && i < 3; i++)
            EXPECT_OK(suite, suite->api.graph_launch(suite->stream, graph));
        expect_vector(suite, NULL, &a, 3.0f, 1.0f, "a");
        expect_vector(suite, NULL, &b, 13.0f, 1.0f, "b");
        suite->api.graph_destroy(graph);
    }
    vector_free(suite, &a);
    vector_free(suite, &b);
    case_end(suite);
}

static void case_declined(struct suite *suite)
{
    if (!case_begin(suite, GROUP, "declined where it does not work"))
        return;
    if (suite_has_capability(suite, TANDEM_CAP_CAPTURE) ||
        suite->api.capture_begin == NULL)
        case_skip(suite, "%s",
                  suite->api.capture_begin == NULL
                      ? "capture is left to the loader"
                      : "capture works here");
    else
        expect(suite, suite->api.capture_begin(suite->stream),
               TANDEM_UNSUPPORTED, "capture_begin");
    case_end(suite);
}

void contract_capture(struct suite *suite)
{
    case_replay(suite);
    case_declined(suite);
}
