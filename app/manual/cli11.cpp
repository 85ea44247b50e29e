// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/manual/command.h"

#include <CLI/CLI.hpp>

namespace klineage::manual {

namespace {

/// CLI11 writes a type and its checks as "TEXT:{a,b}", "INT:POSITIVE" or "DIR".
void readType(const std::string &type, Option &option)
{
    option.value = type.substr(0, type.find(':'));
    const std::size_t open = type.find('{');
    const std::size_t close = type.find('}');
    if (open == std::string::npos || close == std::string::npos || close < open)
        return;
    std::string rest = type.substr(open + 1, close - open - 1) + ',';
    for (std::size_t comma; (comma = rest.find(',')) != std::string::npos; rest.erase(0, comma + 1))
        option.choices.push_back(rest.substr(0, comma));
}

Option optionOf(const CLI::Option &from)
{
    Option option;
    for (const std::string &name : from.get_snames())
        option.names.push_back("-" + name);
    for (const std::string &name : from.get_lnames())
        option.names.push_back("--" + name);
    option.description = from.get_description();
    option.required = from.get_required();
    const int most = from.get_items_expected_max();
    option.repeats = most > 1;
    if (most > 0)
        readType(from.get_type_name(), option);
    if (option.names.empty())
        option.value =
            from.get_name(true); // what the reader fills in has a name, and its type is of no interest
    return option;
}

} // namespace

Command commandOf(const CLI::App &app)
{
    Command command{app.get_name(), app.get_description(), app.get_footer(), {}, {}, {}};
    for (const CLI::Option *option : app.get_options()) {
        if (option->get_positional())
            command.arguments.push_back(optionOf(*option));
        else if (!option->get_group().empty())
            command.options.push_back(optionOf(*option));
    }
    for (const CLI::App *verb : app.get_subcommands([](const CLI::App *) { return true; })) {
        if (!verb->get_group().empty())
            command.commands.push_back(commandOf(*verb));
    }
    return command;
}

} // namespace klineage::manual
