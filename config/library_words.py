"""Words of libraries that stand on our pages and that the libraries have not put into our languages.

Nobody reads these tuples: they bring the words into our own catalogue, which Django asks before a library's.
"""

from django.utils.translation import gettext_noop as _

UNFOLD = (
    _(
        "Raw passwords are not stored, so there is no way to see this user’s password, but you can change the password"
        ' using <a href="{}" class="text-primary-600 dark:text-primary-500">this form</a>.'
    ),
    _("After you've created a user, you’ll be able to edit more user options."),
    _("All applications"),
    _("Apply Filters"),
    _("Cancel"),
    _("Choose file to upload"),
    _("Click to cancel"),
    _("Click to download"),
    _("Dark"),
    _("Date"),
    _("Expand row"),
    _("False"),
    _("General"),
    _("Go back"),
    _("Image preview"),
    _("Light"),
    _("Loading more results..."),
    _("More actions"),
    _("Next"),
    _("No data"),
    _("No recent searches"),
    _("No results found"),
    _("No results matching your query"),
    _("Previous"),
    _("Recent searches"),
    _("Record picture"),
    _("Reset filters"),
    _("Return to site"),
    _("Run"),
    _("Search apps and models..."),
    _("Select action"),
    _("Select action to run"),
    _("Select all rows"),
    _("Select record"),
    _("Select value"),
    _("Submit"),
    _("This item will be deleted."),
    _("This page yielded into no results. Create a new item or reset your filters."),
    _("Toggle password visibility"),
    _("True"),
    _("Type to search"),
    _("Welcome"),
    _("Welcome back to"),
    _("You have been successfully logged out from the administration"),
)
AXES = (
    _("Access lock out"),
    _("Attempt Time"),
    _("Expires At"),
    _("Failed Logins"),
    _("IP Address"),
    _("Path"),
    _("User Agent"),
    _("access attempt"),
    _("access attempts"),
)
