/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plots results as SVG; see result_document.h.  A band is a suite on a device.
 * A dot is the fraction of a row's upper bound that Tandem reaches, on a
 * logarithmic scale.
 */
#include <config.h>

#include "result_document.h"

#include "../common/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEFT 210.0
#define WIDTH 640.0
#define BAND 46.0
#define TOP 64.0
#define LEAST 0.05 /* fractions at the plot's edges */
#define MOST 20.0

struct band {
    const char *device, *suite, *limit;
    double *fractions;
    const char **names;
    size_t count;
    bool mixed; /* rows have different upper bounds */
};

static double x_of(double fraction)
{
    double clamped = fmin(fmax(fraction, LEAST), MOST);

    return LEFT + WIDTH * log(clamped / LEAST) / log(MOST / LEAST);
}

static void escape(const char *text, FILE *out)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            if ((unsigned char)*text >= ' ')
                fputc(*text, out);
        }
}

/* Fills a band from rows `first` to `end`, which have one suite and device.
 * Returns false if memory is exhausted. */
static bool band_fill(struct band *band, const json_t *rows, size_t first,
                      size_t end)
{
    const json_t *row = json_array_get(rows, first);

    memset(band, 0, sizeof *band);
    band->device = row_text(row, "device");
    band->suite = row_text(row, "suite");
    band->fractions = calloc(end - first, sizeof *band->fractions);
    band->names = calloc(end - first, sizeof *band->names);
    if (band->fractions == NULL || band->names == NULL)
        return false;
    for (size_t i = first; i < end; i++) {
        double fraction;

        row = json_array_get(rows, i);
        fraction = row_upper_bound_fraction(row);
        if (fraction <= 0)
            continue;
        if (band->limit == NULL)
            band->limit = row_text(row, "upper_bound");
        band->mixed |= strcmp(band->limit, row_text(row, "upper_bound")) != 0;
        band->fractions[band->count] = fraction;
        band->names[band->count++] = row_text(row, "name");
    }
    return true;
}

static void band_free(struct band *band)
{
    free(band->fractions);
    free(band->names);
}

static void band_print(struct band *band, double top, FILE *out)
{
    double middle;

    fprintf(out, "<text x=\"8\" y=\"%.1f\">", top + 18);
    escape(band->device, out);
    fputs(", ", out);
    escape(band->suite, out);
    fprintf(out,
            "</text>\n<text x=\"8\" y=\"%.1f\" class=\"small\">1 = ", top + 33);
    escape(band->limit, out);
    fprintf(out, "%s</text>\n", band->mixed ? " and others" : "");
    for (size_t i = 0; i < band->count; i++) {
        double down =
            band->count == 1 ? 0.5 : (double)i / (double)(band->count - 1);

        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>",
                x_of(band->fractions[i]), top + 7 + down * (BAND - 14));
        escape(band->names[i], out);
        fprintf(out, ": %.3f</title></circle>\n", band->fractions[i]);
    }
    middle = quantile(band->fractions, band->count, 0.5);
    fprintf(out,
            "<line class=\"median\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
            "y2=\"%.1f\"/>\n<text x=\"%.1f\" y=\"%.1f\">%.2f</text>\n",
            x_of(middle), x_of(middle), top + 3, top + BAND - 3,
            LEFT + WIDTH + 10, top + BAND / 2 + 5, middle);
}

static void axis_print(double bottom, FILE *out)
{
    static const double ticks[] = {0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20};

    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
        double x = x_of(ticks[i]);

        fprintf(out,
                "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
                "y2=\"%.1f\"/>\n<text x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"middle\" class=\"small\">%g</text>\n",
                ticks[i] == 1 ? "one" : "tick", x, x, TOP, bottom, x,
                bottom + 16, ticks[i]);
    }
}

static void head_print(const json_t *document, double height, FILE *out)
{
    const json_t *device;
    const char *separator = "";
    size_t i;

    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
            "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"14\">\n"
            "<style>.small{font-size:11px;fill:#555}"
            ".tick{stroke:#ddd}.one{stroke:#333}"
            ".median{stroke:#c33;stroke-width:2}"
            "circle{fill:#27c;fill-opacity:0.6}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"8\" y=\"22\">Tandem %s: fraction of the limit, by "
            "suite (right: the median)</text>\n"
            "<text x=\"8\" y=\"42\" class=\"small\">%s: ",
            LEFT + WIDTH + 70, height, row_text(document, "version"),
            row_text(document, "date"));
    json_array_foreach (json_object_get(document, "devices"), i, device) {
        fputs(separator, out);
        escape(row_text(device, "name"), out);
        separator = "; ";
    }
    fputs("</text>\n", out);
}

/* Returns the first row of the next suite or device, or the number of rows. */
static size_t next_band(const json_t *rows, size_t from)
{
    const json_t *first = json_array_get(rows, from), *row;
    size_t i = from + 1;

    for (; i < json_array_size(rows); i++) {
        row = json_array_get(rows, i);
        if (strcmp(row_text(row, "device"), row_text(first, "device")) != 0 ||
            strcmp(row_text(row, "suite"), row_text(first, "suite")) != 0)
            break;
    }
    return i;
}

void plot_print(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t total = json_array_size(rows), bands = 0;
    double top = TOP;

    for (size_t i = 0, end; i < total; i = end) {
        bool any = false;

        for (end = next_band(rows, i); i < end; i++)
            any |= row_upper_bound_fraction(json_array_get(rows, i)) > 0;
        bands += any;
    }
    head_print(document, TOP + BAND * (double)bands + 30, out);
    axis_print(TOP + BAND * (double)bands, out);
    for (size_t i = 0, end; i < total; i = end) {
        struct band band;

        end = next_band(rows, i);
        if (band_fill(&band, rows, i, end) && band.count > 0) {
            band_print(&band, top, out);
            top += BAND;
        }
        band_free(&band);
    }
    fputs("</svg>\n", out);
}
