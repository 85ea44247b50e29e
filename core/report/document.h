// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace klineage::report {

struct Heading {
    std::string text;
};

struct Paragraph {
    std::string text;
};

/// Names and values, one a line.
struct Facts {
    std::vector<std::pair<std::string, std::string>> entries;
    /// Leaves out what has no value.
    void add(std::string name, std::string value)
    {
        if (!value.empty())
            entries.emplace_back(std::move(name), std::move(value));
    }
};

struct Column {
    std::string heading;
    bool isFigure = false; ///< numbers: to the right, never wrapped
};

/// A table for programs: numbers with all of their digits, units in the headings.
struct Data {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows; ///< as many cells as columns
};

struct Table {
    std::vector<Column> columns;
    std::vector<std::vector<std::string>> rows; ///< as many cells as columns
    Data data{};                                ///< the same for programs; empty: the texts are all there is
};

/// A picture that somebody else draws, by name; writers that have no pictures leave it out.
struct Figure {
    std::string name;
    std::string caption;
};

/// What to type into a shell, and what that is good for.
struct Commands {
    struct Line {
        std::string purpose;
        std::string text; ///< may be several lines
    };
    std::vector<Line> lines;
};

using Block = std::variant<Heading, Paragraph, Facts, Table, Figure, Commands>;

/// What a report says, before it has a format. All texts are plain: writers escape them.
struct Document {
    std::string title;
    std::string subtitle;
    std::vector<Block> blocks;
};

} // namespace klineage::report
